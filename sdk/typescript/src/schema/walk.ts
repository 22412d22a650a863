/**
 * From a schema of any library to JSON Schema 2020-12.
 *
 * Owns what all of them share: paths, recursion, references, descriptions, and the error
 * for what JSON can not carry. Never guesses: a kind it does not know is an error.
 */

import { SchemaConversionError } from "../errors.js";
import { encode, JsonFault } from "../json.js";
import type { JsonSchema } from "./infer.js";
import { convertZod3, isZod3 } from "./zod3.js";
import { convertZod4, isZod4, metadataOf } from "./zod4.js";

/** A JSON Schema that is still being built. */
export type Draft = { [keyword: string]: unknown };

/** Which side of a schema: what goes into it, or what comes out. */
export type Side = "input" | "output";

/** Deepest nesting of schemas; more is taken for a getter that never ends. */
const DEPTH = 100;

/** Keywords that describe and do not judge, which a schema's metadata may set. */
const ANNOTATIONS = ["title", "description", "examples", "deprecated", "readOnly", "writeOnly"] as const;

interface Open {
  readonly path: string;
  /** The name under `$defs`, once something below refers back. */
  name: string | undefined;
}

/** One conversion: a depth-first walk over schemas. */
export class Walk {
  readonly #open = new Map<object, Open>();
  readonly #named = new Map<object, string>();
  readonly #definitions: Draft = {};

  constructor(readonly side: Side) {}

  /** The whole schema, with its definitions. */
  root(schema: object): Draft {
    const draft = this.visit(schema, "$");
    if (Object.keys(this.#definitions).length > 0) draft["$defs"] = this.#definitions;
    return draft;
  }

  /** The JSON Schema of one schema, found at `path`. */
  visit(schema: unknown, path: string): Draft {
    if (!isSchema(schema)) throw this.fault(path, String(typeof schema), "is not a schema");
    const known = this.#named.get(schema);
    if (known !== undefined) return reference(known);
    const open = this.#open.get(schema);
    if (open !== undefined) return reference((open.name ??= this.#name(open.path)));
    if (this.#open.size >= DEPTH) throw this.fault(path, "schema", `is nested more than ${DEPTH} levels deep`);
    const entry: Open = { path, name: undefined };
    this.#open.set(schema, entry);
    const draft = this.#convert(schema, path);
    this.#open.delete(schema);
    annotate(draft, schema);
    if (entry.name === undefined) return draft;
    this.#named.set(schema, entry.name);
    this.#definitions[entry.name] = draft;
    return reference(entry.name);
  }

  /** The error for what JSON Schema can not carry. */
  fault(path: string, kind: string, reason: string): SchemaConversionError {
    return new SchemaConversionError(path, kind, reason);
  }

  #convert(schema: object, path: string): Draft {
    if (isZod4(schema)) return convertZod4(schema, path, this);
    if (isZod3(schema)) return convertZod3(schema, path, this);
    throw this.fault(path, "object", "is not a schema of a known kind");
  }

  #name(path: string): string {
    const words = path.match(/[A-Za-z0-9]+/g) ?? [];
    const stem = words.at(-1) ?? "Schema";
    const base = stem.charAt(0).toUpperCase() + stem.slice(1);
    const taken = new Set([...this.#open.values(), ...[...this.#named.values()].map((name) => ({ name }))].map((open) => open.name));
    let name = base;
    for (let number = 2; taken.has(name); number++) name = `${base}${number}`;
    return name;
  }
}

function isSchema(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function reference(name: string): Draft {
  return { $ref: `#/$defs/${name}` };
}

/** Adds what the schema says of itself to what was converted. */
function annotate(draft: Draft, schema: object): void {
  const said = metadataOf(schema);
  for (const keyword of ANNOTATIONS) {
    const value = said[keyword];
    if (value !== undefined && isJson(value)) draft[keyword] = value;
  }
}

/** Whether a value can stand in a JSON Schema as it is. */
export function isJson(value: unknown): boolean {
  try {
    return value !== undefined && encode(value) !== "";
  } catch (fault) {
    if (fault instanceof JsonFault) return false;
    throw fault;
  }
}

/** `draft` or `null`. */
export function nullable(draft: Draft): Draft {
  const plain = typeof draft["type"] === "string" && !("const" in draft) && !("enum" in draft) && !("$ref" in draft);
  if (plain) return { ...draft, type: [draft["type"], "null"] };
  return { anyOf: [draft, { type: "null" }] };
}

/**
 * A value that is best what `draft` says, but is taken as anything: the schema's own
 * library makes something of it on the host.
 */
export function widened(draft: Draft, also: Draft = {}): Draft {
  return { anyOf: [draft, also] };
}

/** One of several; constants become an enumeration, and bare types a list of them. */
export function anyOf(options: Draft[]): Draft {
  const [only] = options;
  if (options.length === 1 && only !== undefined) return only;
  const values = options.flatMap((option) => (isChoice(option) ? choices(option) : []));
  if (options.length > 0 && options.every(isChoice)) return enumeration(values);
  if (options.length > 1 && options.every(isBareType)) return { type: [...new Set(options.map((option) => option["type"]))] };
  return options.length === 0 ? { not: {} } : { anyOf: options };
}

/** One of these values. */
export function enumeration(values: readonly unknown[]): Draft {
  const unique = [...new Set(values)];
  const types = [...new Set(unique.map((value) => (value === null ? "null" : typeof value)))];
  const typed = types.length === 1 ? { type: types[0] } : {};
  return unique.length === 1 ? { ...typed, const: unique[0] } : { ...typed, enum: unique };
}

function isBareType(option: Draft): boolean {
  return typeof option["type"] === "string" && Object.keys(option).length === 1;
}

function isChoice(option: Draft): boolean {
  const others = Object.keys(option).filter((keyword) => !["type", "const", "enum"].includes(keyword));
  return others.length === 0 && ("const" in option || "enum" in option);
}

function choices(option: Draft): unknown[] {
  return "const" in option ? [option["const"]] : (option["enum"] as unknown[]);
}

/** An object with these members. */
export function objectOf(properties: [name: string, schema: Draft][], required: string[], rest: Draft | boolean | undefined): Draft {
  const draft: Draft = { type: "object", properties: fromEntries(properties) };
  if (required.length > 0) draft["required"] = required;
  if (rest !== undefined) draft["additionalProperties"] = rest;
  return draft;
}

/** As `Object.fromEntries`, with `__proto__` as an ordinary name. */
function fromEntries(entries: [string, Draft][]): Draft {
  const object: Draft = Object.create(null) as Draft;
  for (const [name, value] of entries) object[name] = value;
  return object;
}

/** A fixed list, of which the first `least` must be there. */
export function tupleOf(items: Draft[], least: number, rest: Draft | undefined): Draft {
  const draft: Draft = { type: "array" };
  if (items.length > 0) draft["prefixItems"] = items;
  draft["items"] = rest ?? false;
  if (least > 0) draft["minItems"] = least;
  return draft;
}

/** An object whose names are judged by `names` and whose values by `values`. */
export function recordOf(names: Draft, values: Draft): Draft {
  const draft: Draft = { type: "object" };
  const { type, ...judged } = names;
  if (Object.keys(judged).length > 0) draft["propertyNames"] = judged;
  else if (type !== undefined && type !== "string") draft["propertyNames"] = names;
  draft["additionalProperties"] = values;
  return draft;
}

/**
 * Whether a regular expression means the same as a `pattern`: JSON Schema has no flags,
 * and patterns that look around cost too much where hostile text is judged. What is left
 * out here is still judged by the schema's library on the host.
 */
export function isPortable(pattern: RegExp): boolean {
  return /^[dguvy]*$/.test(pattern.flags) && !/\(\?<?[=!]|\(\?[a-z]*-?[a-z]+:|\\[1-9]|\\k<|\[\^?\]/.test(pattern.source);
}

/** Adds a `pattern`, beside those that are there. */
export function addPattern(draft: Draft, source: string): void {
  if (draft["pattern"] === undefined) draft["pattern"] = source;
  else draft["allOf"] = [...((draft["allOf"] as Draft[] | undefined) ?? []), { pattern: source }];
}

/** Text as a pattern that matches it. */
export function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

/** The kinds that no JSON value is, and what to use instead. */
export const IMPOSSIBLE: Readonly<Record<string, string>> = {
  bigint: "JSON has no bigint; use z.coerce.bigint(), or a string",
  date: "JSON has no date; use z.coerce.date(), or a string in ISO form",
  map: "JSON has no Map; use z.record(), or an array of pairs",
  set: "JSON has no Set; use z.array()",
  symbol: "JSON has no symbol",
  function: "JSON has no function",
  promise: "JSON has no promise",
  nan: "JSON has no NaN",
  file: "JSON has no file; send text or base64",
  undefined: "JSON has no undefined; use .optional() on the member that may be absent",
  void: "JSON has no undefined; leave outputSchema out",
  custom: "JSON Schema can not say what a custom check accepts; use a schema with .refine()",
};

/** The result of a conversion. */
export type Converted = Exclude<JsonSchema, boolean>;
