/**
 * Zod 4, full and mini, read through the definitions that every schema carries.
 *
 * Owns what each kind means as JSON Schema. Reads definitions only: never imports Zod,
 * so that any copy will do, and never runs a check or a transform.
 */

import { member } from "../json.js";
import { numberFormat, NUMBER_NAMES, stringFormat } from "./formats.js";
import {
  addPattern,
  anyOf,
  type Draft,
  enumeration,
  IMPOSSIBLE,
  isJson,
  isPortable,
  literally,
  nullable,
  objectOf,
  recordOf,
  tupleOf,
  type Walk,
  widened,
} from "./walk.js";

type Definition = { readonly type: string; readonly coerce?: boolean; readonly checks?: readonly unknown[] } & Record<string, unknown>;

interface Internals {
  readonly def: Definition;
  readonly optin?: string;
  readonly optout?: string;
  readonly values?: ReadonlySet<unknown>;
  readonly pattern?: RegExp;
}

/** A schema of Zod 4. */
export interface Zod4Schema {
  readonly _zod: Internals;
}

/** Whether this is one. */
export function isZod4(schema: object): schema is Zod4Schema {
  const internals = (schema as { _zod?: { def?: { type?: unknown } } })._zod;
  return typeof internals === "object" && typeof internals?.def?.type === "string";
}

/** What a schema says of itself: `.describe()` and `.meta()`. */
export function metadataOf(schema: object): Record<string, unknown> {
  const { description } = schema as { description?: unknown };
  const said = typeof description === "string" ? { description } : {};
  if (!isZod4(schema)) return said;
  const registry = (globalThis as { __zod_globalRegistry?: { get?: (schema: object) => unknown } }).__zod_globalRegistry;
  const { meta } = schema as { meta?: unknown };
  const found: unknown = typeof meta === "function" ? (meta as () => unknown).call(schema) : registry?.get?.(schema);
  return typeof found === "object" && found !== null ? { ...said, ...found } : said;
}

/** The JSON Schema of one Zod 4 schema. */
export function convertZod4(schema: Zod4Schema, path: string, walk: Walk): Draft {
  const { def } = schema._zod;
  const convert = KINDS[def.type];
  if (convert !== undefined) return convert(schema._zod, path, walk);
  const reason = IMPOSSIBLE[def.type] ?? "this kind of schema is not known";
  throw walk.fault(path, def.type, reason);
}

type Convert = (zod: Internals, path: string, walk: Walk) => Draft;

const inner: Convert = ({ def }, path, walk) => walk.visit(def["innerType"], path);

const KINDS: Readonly<Record<string, Convert>> = {
  string: ({ def }, _path, walk) => (coerced(def, walk) ? widened(strings(def)) : strings(def)),
  number: ({ def }, _path, walk) => (coerced(def, walk) ? widened(numbers(def), { type: ["string", "boolean", "null"] }) : numbers(def)),
  boolean: ({ def }, _path, walk) => (coerced(def, walk) ? widened({ type: "boolean" }) : { type: "boolean" }),
  bigint: ({ def }, path, walk) => {
    if (coerced(def, walk)) return { type: ["integer", "string", "boolean"] };
    throw walk.fault(path, "bigint", IMPOSSIBLE["bigint"] ?? "");
  },
  date: ({ def }, path, walk) => {
    // A Date that goes out is written in ISO form.
    if (walk.side === "output") return { type: "string", format: "date-time" };
    if (coerced(def, walk)) return { type: ["string", "number"] };
    throw walk.fault(path, "date", IMPOSSIBLE["date"] ?? "");
  },
  null: () => ({ type: "null" }),
  any: () => ({}),
  unknown: () => ({}),
  never: () => ({ not: {} }),
  literal: ({ def }, path, walk) => choices(def["values"] as unknown[], "literal", path, walk),
  enum: ({ def }, path, walk) => choices(enumValues(def["entries"] as Record<string, unknown>), "enum", path, walk),
  array: ({ def }, path, walk) => ({ type: "array", items: walk.visit(def["element"], `${path}[]`), ...sizes(def, "Items") }),
  object: objects,
  union: unions,
  intersection: ({ def }, path, walk) => ({ allOf: [walk.visit(def["left"], path), walk.visit(def["right"], path)] }),
  tuple: tuples,
  record: records,
  optional: inner,
  nonoptional: inner,
  readonly: inner,
  nullable: (zod, path, walk) => nullable(inner(zod, path, walk)),
  default: defaults,
  prefault: defaults,
  catch: (zod, path, walk) => (walk.side === "input" ? widened(inner(zod, path, walk)) : inner(zod, path, walk)),
  success: (zod, path, walk) => (walk.side === "input" ? widened(inner(zod, path, walk)) : { type: "boolean" }),
  // What a transform takes or gives is known to nobody but itself.
  transform: () => ({}),
  pipe: pipes,
  lazy: ({ def }, path, walk) => walk.visit((def["getter"] as () => unknown)(), path),
  template_literal: ({ pattern }) =>
    pattern !== undefined && isPortable(pattern) ? { type: "string", pattern: pattern.source } : { type: "string" },
};

function coerced(def: Definition, walk: Walk): boolean {
  return def.coerce === true && walk.side === "input";
}

/** The checks of a schema, itself being one when it is a format. */
function checksOf(def: Definition): Definition[] {
  const own = typeof def["check"] === "string" ? [def] : [];
  const more = (def.checks ?? []).map((check) => (check as { _zod: { def: Definition } })._zod.def);
  const all = [...own, ...more];
  // What comes after a rewriting (trim, toLowerCase) judges another text than was sent.
  const rewriting = all.findIndex((check) => check["check"] === "overwrite");
  return rewriting === -1 ? all : all.slice(0, rewriting);
}

function strings(def: Definition): Draft {
  const draft: Draft = { type: "string" };
  for (const check of checksOf(def)) {
    switch (check["check"]) {
      case "min_length":
        draft["minLength"] = check["minimum"];
        break;
      case "max_length":
        draft["maxLength"] = check["maximum"];
        break;
      case "length_equals":
        draft["minLength"] = draft["maxLength"] = check["length"];
        break;
      case "string_format":
        formats(draft, check);
    }
  }
  return draft;
}

function formats(draft: Draft, check: Definition): void {
  const name = String(check["format"]);
  const pattern = check["pattern"] instanceof RegExp ? check["pattern"] : undefined;
  const affix = name === "starts_with" ? check["prefix"] : name === "ends_with" ? check["suffix"] : check["includes"];
  if (typeof affix === "string") {
    addPattern(draft, `${name === "starts_with" ? "^" : ""}${literally(affix)}${name === "ends_with" ? "$" : ""}`);
    return;
  }
  const format = stringFormat(name, { local: check["local"] === true, precision: check["precision"] });
  if (format !== undefined) draft["format"] = format;
  else if (pattern !== undefined && isPortable(pattern)) addPattern(draft, pattern.source);
}

function numbers(def: Definition): Draft {
  const draft: Draft = { type: "number" };
  for (const check of checksOf(def)) {
    switch (check["check"]) {
      case "greater_than":
        draft[check["inclusive"] === true ? "minimum" : "exclusiveMinimum"] = check["value"];
        break;
      case "less_than":
        draft[check["inclusive"] === true ? "maximum" : "exclusiveMaximum"] = check["value"];
        break;
      case "multiple_of":
        draft["multipleOf"] = check["value"];
        break;
      case "number_format":
        Object.assign(draft, numberFormat(String(check["format"])));
    }
  }
  return draft;
}

function sizes(def: Definition, what: "Items"): Draft {
  const draft: Draft = {};
  for (const check of checksOf(def)) {
    if (check["check"] === "min_length") draft[`min${what}`] = check["minimum"];
    if (check["check"] === "max_length") draft[`max${what}`] = check["maximum"];
    if (check["check"] === "length_equals") draft[`min${what}`] = draft[`max${what}`] = check["length"];
  }
  return draft;
}

function choices(values: readonly unknown[], kind: string, path: string, walk: Walk): Draft {
  const odd = values.find((value) => !isJson(value));
  if (values.some((value) => !isJson(value))) throw walk.fault(path, kind, `JSON has no ${typeof odd}`);
  return enumeration(values);
}

/** The values of an enumeration; TypeScript's numeric ones also map values to names. */
export function enumValues(entries: Readonly<Record<string, unknown>>): unknown[] {
  const numbers = Object.values(entries).filter((value) => typeof value === "number");
  return Object.entries(entries)
    .filter(([name]) => !numbers.includes(Number(name)))
    .map(([, value]) => value);
}

function mayBeAbsent(schema: unknown, walk: Walk): boolean {
  const internals = (schema as Partial<Zod4Schema> | undefined)?._zod;
  // Anything that is set lets the member be absent: "optional", or "defaulted" in later versions.
  return (walk.side === "input" ? internals?.optin : internals?.optout) !== undefined;
}

function objects({ def }: Internals, path: string, walk: Walk): Draft {
  const shape = def["shape"] as Record<string, unknown>;
  const properties: [string, Draft][] = [];
  const required: string[] = [];
  for (const name of Object.keys(shape)) {
    const schema = shape[name];
    const absent = mayBeAbsent(schema, walk);
    // A member that is always undefined is one that is not there.
    const kind = (schema as Partial<Zod4Schema> | undefined)?._zod?.def.type;
    if (absent && kind === "undefined") properties.push([name, { not: {} }]);
    else properties.push([name, walk.visit(schema, member(path, name))]);
    if (!absent) required.push(name);
  }
  return objectOf(properties, required, restOf(def, path, walk));
}

/** What an object's other members must be; nothing is said of those that Zod drops. */
function restOf(def: Definition, path: string, walk: Walk): Draft | boolean | undefined {
  const rest = def["catchall"] as Zod4Schema | undefined;
  switch (rest?._zod.def.type) {
    case undefined:
    case "unknown":
    case "any":
      return undefined;
    case "never":
      return false;
    default:
      return walk.visit(rest, `${path}.*`);
  }
}

function unions({ def }: Internals, path: string, walk: Walk): Draft {
  const options = (def["options"] as unknown[])
    .map((option, index) => ({ option, path: `${path}|${index}` }))
    // Undefined is said by leaving the member out.
    .filter(({ option }) => !isUndefined(option))
    .map(({ option, path }) => walk.visit(option, path));
  const exclusive = def["inclusive"] === false && def["discriminator"] === undefined;
  return exclusive && options.length > 1 ? { oneOf: options } : anyOf(options);
}

function isUndefined(schema: unknown): boolean {
  return (schema as Partial<Zod4Schema> | undefined)?._zod?.def.type === "undefined";
}

function tuples({ def }: Internals, path: string, walk: Walk): Draft {
  const items = def["items"] as unknown[];
  const least = items.length - [...items].reverse().findIndex((item) => !mayBeAbsent(item, walk));
  const rest = def["rest"] === null || def["rest"] === undefined ? undefined : walk.visit(def["rest"], `${path}[]`);
  const drafts = items.map((item, index) => walk.visit(item, `${path}[${index}]`));
  return tupleOf(drafts, items.every((item) => mayBeAbsent(item, walk)) ? 0 : least, rest);
}

function records({ def }: Internals, path: string, walk: Walk): Draft {
  const key = def["keyType"] as Zod4Schema;
  const names = NUMBER_NAMES[key._zod.def.type] ?? walk.visit(key, `${path}.<name>`);
  const values = walk.visit(def["valueType"], `${path}.*`);
  if (def["mode"] === "loose") {
    const pattern = names["pattern"];
    return typeof pattern === "string" ? { type: "object", patternProperties: { [pattern]: values } } : { type: "object" };
  }
  const draft = recordOf(names, values);
  const finite = key._zod.values;
  const whole = finite !== undefined && def["partial"] !== true && !mayBeAbsent(def["valueType"], walk);
  if (whole) draft["required"] = [...finite].map(String);
  return draft;
}

function defaults(zod: Internals, path: string, walk: Walk): Draft {
  const draft = inner(zod, path, walk);
  if (walk.side === "output") return draft;
  const first = zod.def["defaultValue"];
  const innerKind = (zod.def["innerType"] as Zod4Schema)._zod.def.type;
  // A default that changes (a time, a random id) says nothing, nor does that of a transform.
  const steady = isJson(first) && JSON.stringify(first) === JSON.stringify(zod.def["defaultValue"]);
  return steady && (innerKind !== "pipe" || zod.def.type === "prefault") ? { ...draft, default: first } : draft;
}

function pipes({ def }: Internals, path: string, walk: Walk): Draft {
  const from = def["in"] as Zod4Schema;
  if (walk.side === "output") return walk.visit(def["out"], path);
  // Before a preprocessing step anything may come; what follows says what it is for.
  if (from._zod.def.type === "transform") return widened(walk.visit(def["out"], path));
  return walk.visit(from, path);
}
