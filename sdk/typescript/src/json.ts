/**
 * JSON on its way out.
 *
 * Owns turning a value into JSON text without losing anything in silence: what JSON has
 * no form for is an error with its path. Never reads what comes in.
 */

/** Any JSON value. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };

/** Deepest nesting that brigd takes in a value, in levels. */
export const NESTING_LEVELS = 512;

/** A value that has no JSON form. */
export class JsonFault extends TypeError {
  override readonly name = "JsonFault";
  constructor(
    /** Where, as `$.rows[0].when`. */
    readonly path: string,
    /** What is there. */
    readonly found: string,
  ) {
    super(`${path} is ${found}`);
  }
}

/** `.name`, or `["odd name"]` when it is no identifier. */
export function member(path: string, name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
}

/**
 * JSON text of `value`; `undefined` is `null`, `undefined` members are left out, and
 * what has a `toJSON` (dates) is asked for it.
 *
 * @throws {JsonFault} for a cycle, a bigint, a function, NaN, a Map, and their like.
 */
export function encode(value: unknown, most: number = NESTING_LEVELS): string {
  if (value === undefined) return "null";
  let text: string | undefined;
  try {
    text = JSON.stringify(value, strict);
  } catch (fault) {
    locate(value, "$", []);
    if (fault instanceof RangeError) throw new JsonFault("$", `nested more than ${most} levels deep`);
    // Not one of ours: a getter or a `toJSON` threw.
    throw new JsonFault("$", "an object that can not be read: a getter or toJSON threw");
  }
  if (text === undefined) throw new JsonFault("$", describe(value) ?? "nothing that JSON can say");
  if (levels(text) > most) throw new JsonFault("$", `nested more than ${most} levels deep`);
  return text;
}

function strict(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[key];
  if (lost(original, value) !== undefined) throw new TypeError("no JSON form");
  return value;
}

/** What is lost when `original`, which `toJSON` made `value` of, becomes JSON text. */
function lost(original: unknown, value: unknown): string | undefined {
  if (original instanceof Date) return value === null ? "an invalid Date" : undefined;
  if (ArrayBuffer.isView(original)) return describe(original);
  return describe(value);
}

/** What a value is, if JSON has no form for it. */
function describe(value: unknown): string | undefined {
  switch (typeof value) {
    case "bigint":
      return "a bigint; JSON has none, send it as a string";
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    case "number":
      return Number.isFinite(value) ? undefined : `${value}; JSON has no such number`;
    case "object":
      return value === null ? undefined : describeObject(value);
    default:
      return undefined;
  }
}

function describeObject(value: object): string | undefined {
  if (value instanceof Map) return "a Map; send Object.fromEntries(map)";
  if (value instanceof Set) return "a Set; send [...set]";
  if (value instanceof Promise) return "a promise that was not awaited";
  if (value instanceof RegExp) return "a RegExp; send its source";
  if (value instanceof Error) return "an Error; throw it, or send its message";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return "bytes; send them as base64 or as an array of numbers";
  if (value instanceof WeakMap || value instanceof WeakSet) return "a weak collection";
  return undefined;
}

/** Throws at the first place that JSON has no form for. Only runs once something failed. */
function locate(value: unknown, path: string, above: object[]): void {
  if (above.length > NESTING_LEVELS) throw new JsonFault("$", `nested more than ${NESTING_LEVELS} levels deep`);
  const toJson = (value as { toJSON?: unknown } | null | undefined)?.toJSON;
  const plain: unknown = typeof toJson === "function" ? (toJson as () => unknown).call(value) : value;
  const found = lost(value, plain);
  if (found !== undefined) throw new JsonFault(path, found);
  if (typeof plain !== "object" || plain === null) return;
  if (above.includes(plain)) throw new JsonFault(path, "a reference back to something that holds it; JSON has no cycles");
  const below = [...above, plain];
  if (Array.isArray(plain)) {
    plain.forEach((item, index) => locate(item, `${path}[${index}]`, below));
    return;
  }
  for (const name of Object.keys(plain)) locate((plain as Record<string, unknown>)[name], member(path, name), below);
}

/** How deeply JSON text is nested. */
function levels(text: string): number {
  // Text this short can not be deeper than the limit.
  if (text.length < 2 * NESTING_LEVELS) return 0;
  let depth = 0;
  let deepest = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x22) index = endOfString(text, index);
    else if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth--;
  }
  return deepest;
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && backslashesBefore(text, end) % 2 === 1) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function backslashesBefore(text: string, end: number): number {
  let start = end;
  while (text.charCodeAt(start - 1) === 0x5c) start--;
  return end - start;
}
