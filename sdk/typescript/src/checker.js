// @ts-check
/**
 * Type-checks a program against declarations, with the TypeScript compiler it is given.
 *
 * Owns the world a program is checked in: the standard library, the globals of the
 * guest, and the program wrapped as brigd runs it. Never runs a program, never reads a
 * file but the compiler's own library, and knows no SDK: `brig check --types` uses this
 * very file.
 */

/**
 * @typedef {{ source: string, declarations: string, form?: string | undefined, language?: string | undefined }} Program
 * @typedef {{ code: "type_error_check", name: string, message: string, line: number, column: number, excerpt: string, retryable: false }} TypeFault
 */

/** What the guest has beside the standard library. */
export const GUEST = `
declare class HostError extends Error { readonly code: string; readonly data?: any; readonly function: string; }
declare class InternalError extends Error {}
declare const console: { log(...values: any[]): void; info(...values: any[]): void; debug(...values: any[]): void; warn(...values: any[]): void; error(...values: any[]): void; trace(...values: any[]): void; dir(...values: any[]): void; table(...values: any[]): void; assert(condition?: unknown, ...values: any[]): void; count(label?: string): void; countReset(label?: string): void; group(...values: any[]): void; groupCollapsed(...values: any[]): void; groupEnd(): void; time(label?: string): void; timeEnd(label?: string): void; timeLog(label?: string, ...values: any[]): void; };
declare function setTimeout<A extends any[]>(run: (...values: A) => void, ms?: number, ...values: A): number;
declare function setInterval<A extends any[]>(run: (...values: A) => void, ms?: number, ...values: A): number;
declare function setImmediate<A extends any[]>(run: (...values: A) => void, ...values: A): number;
declare function clearTimeout(timer?: number): void;
declare function clearInterval(timer?: number): void;
declare function clearImmediate(timer?: number): void;
declare function queueMicrotask(run: () => void): void;
declare function structuredClone<T>(value: T, options?: { transfer?: any[] }): T;
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare class URLSearchParams { constructor(init?: string | Record<string, string> | Iterable<[string, string]> | URLSearchParams); readonly size: number; append(name: string, value: string): void; delete(name: string, value?: string): void; get(name: string): string | null; getAll(name: string): string[]; has(name: string, value?: string): boolean; set(name: string, value: string): void; sort(): void; toString(): string; forEach(run: (value: string, name: string, all: URLSearchParams) => void): void; entries(): IterableIterator<[string, string]>; keys(): IterableIterator<string>; values(): IterableIterator<string>; [Symbol.iterator](): IterableIterator<[string, string]>; }
declare class URL { constructor(url: string | URL, base?: string | URL); static canParse(url: string | URL, base?: string | URL): boolean; static parse(url: string | URL, base?: string | URL): URL | null; hash: string; host: string; hostname: string; href: string; readonly origin: string; password: string; pathname: string; port: string; protocol: string; search: string; readonly searchParams: URLSearchParams; username: string; toString(): string; toJSON(): string; }
declare class TextEncoder { readonly encoding: string; encode(text?: string): Uint8Array<ArrayBuffer>; encodeInto(text: string, into: Uint8Array): { read: number; written: number }; }
declare class TextDecoder { constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }); readonly encoding: string; decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string; }
declare class Event { constructor(type: string, init?: any); readonly type: string; readonly target: any; readonly defaultPrevented: boolean; preventDefault(): void; stopPropagation(): void; stopImmediatePropagation(): void; }
declare class CustomEvent extends Event { readonly detail: any; }
declare class EventTarget { addEventListener(type: string, listener: any, options?: any): void; removeEventListener(type: string, listener: any, options?: any): void; dispatchEvent(event: Event): boolean; }
declare class AbortSignal extends EventTarget { static abort(reason?: any): AbortSignal; static timeout(ms: number): AbortSignal; static any(signals: Iterable<AbortSignal>): AbortSignal; readonly aborted: boolean; readonly reason: any; onabort: ((event: Event) => void) | null; throwIfAborted(): void; }
declare class AbortController { readonly signal: AbortSignal; abort(reason?: any): void; }
declare class DOMException extends Error { constructor(message?: string, name?: string); readonly code: number; }
declare class SubtleCrypto { digest(algorithm: string | { name: string }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>; }
declare class Crypto { readonly subtle: SubtleCrypto; getRandomValues<T extends ArrayBufferView>(into: T): T; randomUUID(): string; }
declare const crypto: Crypto;
declare const performance: { now(): number; readonly timeOrigin: number };
`;

/** Most errors that are told. */
const MOST = 20;
/** Longest message, in characters. */
const MESSAGE = 1_000;
/** No such name, or nearly one: wrong wherever it stands. */
const NAMES = new Set([2304, 2551, 2552]);
/** "is possibly undefined" and its like: what a program without types does all the time. */
const LENIENT = new Set([1320, 2531, 2532, 2533, 2722, 18047, 18048, 18049]);
/** A text that was put together is no literal to the compiler, and may well be one. */
const WIDENED = /Type '(?:string|number|boolean)' is not assignable to type '(?:(?:"(?:[^"\\\\]|\\\\.)*"|-?[\d.]+|true|false|null|undefined)(?: \| )?)+'\.$/;
/** The file of the declarations. */
const FUNCTIONS = "/functions.d.ts";
const HEAD = "async function program() {\n";

/** Parsed library files, by compiler and name: parsing them takes most of a first check. */
/** @type {WeakMap<object, Map<string, any>>} */
const libraries = new WeakMap();

/**
 * The type errors of a program, in order, at most twenty.
 *
 * @param {any} ts The `typescript` module.
 * @param {Program} program
 * @returns {TypeFault[]}
 */
export function typeCheck(ts, program) {
  if (typeof ts?.createProgram !== "function") {
    throw new TypeError(`this package "typescript" (${ts?.version ?? "unknown version"}) has no compiler to call; install version 5 or 6`);
  }
  const { text, offset, typed } = wrapped(ts, program);
  const name = typed ? "/program.ts" : "/program.js";
  const files = new Map([
    [name, text],
    ["/guest.d.ts", GUEST],
    [FUNCTIONS, program.declarations],
  ]);
  const compiled = ts.createProgram([...files.keys()], OPTIONS(ts), host(ts, files));
  const file = compiled.getSourceFile(name);
  const found = [...compiled.getSyntacticDiagnostics(file), ...compiled.getSemanticDiagnostics(file)];
  const lines = program.source.split("\n");
  const counts = typed ? () => true : meant(ts, compiled.getTypeChecker(), file);
  return found
    .filter((/** @type {any} */ one) => one.category === ts.DiagnosticCategory.Error && counts(one))
    .filter((/** @type {any} */ one) => !WIDENED.test(ts.flattenDiagnosticMessageText(one.messageText, "\n")))
    .slice(0, MOST)
    .map((/** @type {any} */ one) => {
      const at = file.getLineAndCharacterOfPosition(one.start ?? 0);
      const line = Math.min(Math.max(at.line + 1 - offset, 1), lines.length);
      const column = at.character + 1;
      const message = ts.flattenDiagnosticMessageText(one.messageText, "\n").slice(0, MESSAGE);
      return { code: "type_error_check", name: `TS${one.code}`, message, line, column, excerpt: excerpt(lines[line - 1] ?? "", line, column), retryable: false };
    });
}

/**
 * Which errors count in a program without types: names that there are not, calls of
 * declared functions, and what they gave back. What the compiler guesses of the rest (a
 * variable that holds a number first and a text later) is no error of such a program.
 *
 * @param {any} ts @param {any} checker @param {any} file
 * @returns {(one: any) => boolean}
 */
function meant(ts, checker, file) {
  const isDeclared = (/** @type {any} */ symbol) => symbol?.declarations?.some((/** @type {any} */ one) => one.getSourceFile().fileName === FUNCTIONS) === true;
  const assigned = new Set();
  const collect = (/** @type {any} */ node) => {
    if (ts.isBinaryExpression(node) && ts.isIdentifier(node.left) && ts.isAssignmentOperator?.(node.operatorToken.kind)) assigned.add(node.left.text);
    else if (ts.isBinaryExpression(node) && ts.isIdentifier(node.left) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) assigned.add(node.left.text);
    ts.forEachChild(node, collect);
  };
  collect(file);
  const isCall = (/** @type {any} */ node) => ts.isCallExpression(node) && isDeclared(checker.getResolvedSignature(node)?.declaration?.symbol);
  return (one) => {
    if (LENIENT.has(one.code)) return false;
    if (one.start === undefined || one.code < 2000) return true;
    let node = ts.getTokenAtPosition?.(file, one.start) ?? tokenAt(ts, file, one.start);
    // A global that a program makes by assigning to it.
    if (NAMES.has(one.code)) return !(ts.isIdentifier(node) && assigned.has(node.text));
    if (ts.isPropertyAccessExpression(node.parent) && node.parent.name === node) {
      if (isDeclared(checker.getTypeAtLocation(node.parent.expression).symbol)) return true;
    }
    for (; node !== undefined; node = node.parent) {
      if (isCall(node)) return true;
      // What a function does inside a call is its own affair.
      if (ts.isFunctionLike(node) || ts.isStatement(node)) return false;
    }
    return false;
  };
}

/** @param {any} ts @param {any} file @param {number} position */
function tokenAt(ts, file, position) {
  let found = file;
  const visit = (/** @type {any} */ node) => {
    if (node.getStart(file) <= position && position < node.end) {
      found = node;
      ts.forEachChild(node, visit);
    }
  };
  ts.forEachChild(file, visit);
  return found;
}

const OPTIONS = (/** @type {any} */ ts) => ({
  noEmit: true,
  strict: true,
  // Programs are written without types: what has none is `any`.
  noImplicitAny: false,
  noImplicitThis: false,
  useUnknownInCatchVariables: false,
  allowJs: true,
  checkJs: true,
  skipLibCheck: true,
  skipDefaultLibCheck: true,
  types: [],
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  lib: ["lib.esnext.d.ts"],
});

/** @param {any} ts @param {Map<string, string>} files */
function host(ts, files) {
  let parsed = libraries.get(ts);
  if (parsed === undefined) libraries.set(ts, (parsed = new Map()));
  const folder = ts.getDirectoryPath?.(ts.getDefaultLibFilePath({})) ?? ts.getDefaultLibFilePath({}).replace(/[\\/][^\\/]*$/, "");
  const isLibrary = (/** @type {string} */ name) => name.startsWith(`${folder}/`) && /[\\/]lib\.[\w.]*d\.ts$/.test(name);
  const kept = parsed;
  return {
    getSourceFile(/** @type {string} */ name, /** @type {any} */ target) {
      const own = files.get(name);
      if (own !== undefined) return ts.createSourceFile(name, own, target, true);
      if (!isLibrary(name)) return undefined;
      let file = kept.get(name);
      if (file === undefined) {
        const text = ts.sys.readFile(name);
        if (text === undefined) return undefined;
        kept.set(name, (file = ts.createSourceFile(name, text, target, true)));
      }
      return file;
    },
    getDefaultLibFileName: () => `${folder}/lib.esnext.d.ts`,
    getDefaultLibLocation: () => folder,
    writeFile: () => undefined,
    getCurrentDirectory: () => "/",
    getCanonicalFileName: (/** @type {string} */ name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
    fileExists: (/** @type {string} */ name) => files.has(name) || (isLibrary(name) && ts.sys.fileExists(name)),
    readFile: (/** @type {string} */ name) => files.get(name) ?? (isLibrary(name) ? ts.sys.readFile(name) : undefined),
    directoryExists: () => false,
    getDirectories: () => [],
  };
}

/**
 * The program as brigd would run it: a module, a function's body, or an expression.
 *
 * @param {any} ts @param {Program} program
 * @returns {{ text: string, offset: number, typed: boolean }} `offset`: lines before the program.
 */
function wrapped(ts, program) {
  const parse = (/** @type {string} */ text) => ts.createSourceFile("/program.ts", text, ts.ScriptTarget.ESNext, true);
  const faults = (/** @type {any} */ file) => file.parseDiagnostics.length;
  const { form = "auto", language = "auto" } = program;
  const forms = (/** @type {string} */ source) => [
    { form: "module", text: source, offset: 0, fits: (/** @type {any} */ file) => file.externalModuleIndicator !== undefined },
    { form: "body", text: `${HEAD}${source}\n}`, offset: 1, fits: () => true },
    { form: "expression", text: `${HEAD}return (\n${source}\n);}`, offset: 2, fits: () => true },
  ];
  const plain = normalised(program.source);
  const sources = plain.trimStart().startsWith("```") ? [withoutFence(plain)] : [plain, withoutFence(plain)];
  const all = sources.flatMap(forms).filter((one) => form === "auto" || one.form === form);
  const files = all.map((one) => ({ ...one, file: parse(one.text) }));
  const chosen =
    files.find((one) => faults(one.file) === 0 && one.fits(one.file)) ??
    // None parses: the errors are those of a body.
    files.find((one) => one.form === (form === "auto" ? "body" : form)) ??
    files[0];
  if (chosen === undefined) throw new TypeError(`there is no form "${form}"`);
  const typed = language === "typescript" || (language === "auto" && hasTypes(ts, chosen.file));
  return { text: chosen.text, offset: chosen.offset, typed };
}

/** Line ends as one character, and no byte order mark; positions stay. */
function normalised(/** @type {string} */ source) {
  return source.replace(/^\uFEFF/, " ").replace(/\r\n/g, " \n");
}

/** The program in a message: everything around its first code fence, blanked. */
function withoutFence(/** @type {string} */ source) {
  const blank = (/** @type {string} */ text) => text.replace(/[^\n]/g, " ");
  const text = source.replace(/^\s*<(think|thinking|thought|reasoning|reflection|analysis|scratchpad)>[\s\S]*?<\/\1>/, blank);
  const fence = /^[ \t]*(`{3,}|~{3,})[ \t]*(?:js|javascript|mjs|jsx|node|ts|typescript|mts|tsx)?[ \t]*$/im.exec(text);
  if (fence === null) return text;
  const start = fence.index + fence[0].length;
  const close = new RegExp(`^[ \\t]*${fence[1]}[ \\t]*$`, "m").exec(text.slice(start));
  const end = close === null ? text.length : start + close.index;
  return blank(text.slice(0, start)) + text.slice(start, end) + blank(text.slice(end));
}

/** Whether there is anything that only TypeScript has. @param {any} ts @param {any} file */
function hasTypes(ts, file) {
  const { SyntaxKind } = ts;
  const kinds = new Set([
    SyntaxKind.TypeAliasDeclaration,
    SyntaxKind.InterfaceDeclaration,
    SyntaxKind.EnumDeclaration,
    SyntaxKind.ModuleDeclaration,
    SyntaxKind.AsExpression,
    SyntaxKind.SatisfiesExpression,
    SyntaxKind.NonNullExpression,
    SyntaxKind.TypeAssertionExpression,
    SyntaxKind.TypeParameter,
  ]);
  const visit = (/** @type {any} */ node) =>
    kinds.has(node.kind) || ts.isTypeNode(node) && !ts.isExpressionWithTypeArguments(node) || ts.forEachChild(node, visit) === true ? true : undefined;
  return ts.forEachChild(file, visit) === true;
}

/** @param {string} text @param {number} line @param {number} column */
function excerpt(text, line, column) {
  const start = Math.max(0, column - 80);
  const shown = text.slice(start, start + 160).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, " ");
  const number = String(line);
  return `${number} | ${shown}\n${" ".repeat(number.length)} | ${" ".repeat(Math.max(0, column - 1 - start))}^`;
}
