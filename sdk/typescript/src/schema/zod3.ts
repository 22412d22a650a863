/**
 * Zod 3, read through the definitions that every schema carries.
 *
 * Owns what each kind means as JSON Schema. Never imports Zod, and never runs a check
 * or a transform, except that Zod itself is asked whether a member may be absent.
 */

import { member } from "../json.js";
import { stringFormat } from "./formats.js";
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
import { enumValues } from "./zod4.js";

type Definition = { readonly typeName: string; readonly coerce?: boolean } & Record<string, unknown>;
type Check = { readonly kind: string } & Record<string, unknown>;

/** A schema of Zod 3. */
export interface Zod3Schema {
  readonly _def: Definition;
  isOptional?(): boolean;
}

/** Whether this is one. */
export function isZod3(schema: object): schema is Zod3Schema {
  const definition = (schema as { _def?: { typeName?: unknown } })._def;
  return typeof definition?.typeName === "string" && definition.typeName.startsWith("Zod");
}

/** The JSON Schema of one Zod 3 schema. */
export function convertZod3(schema: Zod3Schema, path: string, walk: Walk): Draft {
  const definition = schema._def;
  const convert = KINDS[definition.typeName];
  if (convert !== undefined) return convert(definition, path, walk);
  const kind = definition.typeName.slice("Zod".length).toLowerCase();
  throw walk.fault(path, kind, IMPOSSIBLE[kind] ?? "this kind of schema is not known");
}

type Convert = (definition: Definition, path: string, walk: Walk) => Draft;

const inner: Convert = (def, path, walk) => walk.visit(def["innerType"], path);

const KINDS: Readonly<Record<string, Convert>> = {
  ZodString: (def, _path, walk) => (coerced(def, walk) ? widened(strings(def)) : strings(def)),
  ZodNumber: (def, _path, walk) => (coerced(def, walk) ? widened(numbers(def), { type: ["string", "boolean", "null"] }) : numbers(def)),
  ZodBoolean: (def, _path, walk) => (coerced(def, walk) ? widened({ type: "boolean" }) : { type: "boolean" }),
  ZodBigInt: (def, path, walk) => {
    if (coerced(def, walk)) return { type: ["integer", "string", "boolean"] };
    throw walk.fault(path, "bigint", IMPOSSIBLE["bigint"] ?? "");
  },
  ZodDate: (def, path, walk) => {
    // A Date that goes out is written in ISO form.
    if (walk.side === "output") return { type: "string", format: "date-time" };
    if (coerced(def, walk)) return { type: ["string", "number"] };
    throw walk.fault(path, "date", IMPOSSIBLE["date"] ?? "");
  },
  ZodNull: () => ({ type: "null" }),
  ZodAny: () => ({}),
  ZodUnknown: () => ({}),
  ZodNever: () => ({ not: {} }),
  ZodLiteral: (def, path, walk) => choices([def["value"]], "literal", path, walk),
  ZodEnum: (def, path, walk) => choices(def["values"] as unknown[], "enum", path, walk),
  ZodNativeEnum: (def, path, walk) => choices(enumValues(def["values"] as Record<string, unknown>), "enum", path, walk),
  ZodArray: arrays,
  ZodObject: objects,
  ZodUnion: unions,
  ZodDiscriminatedUnion: unions,
  ZodIntersection: (def, path, walk) => ({ allOf: [walk.visit(def["left"], path), walk.visit(def["right"], path)] }),
  ZodTuple: tuples,
  ZodRecord: (def, path, walk) => recordOf(walk.visit(def["keyType"], `${path}.<name>`), walk.visit(def["valueType"], `${path}.*`)),
  ZodOptional: inner,
  ZodReadonly: inner,
  ZodBranded: (def, path, walk) => walk.visit(def["type"], path),
  ZodNullable: (def, path, walk) => nullable(inner(def, path, walk)),
  ZodDefault: defaults,
  ZodCatch: (def, path, walk) => (walk.side === "input" ? widened(inner(def, path, walk)) : inner(def, path, walk)),
  ZodEffects: effects,
  ZodPipeline: (def, path, walk) => walk.visit(walk.side === "input" ? def["in"] : def["out"], path),
  ZodLazy: (def, path, walk) => walk.visit((def["getter"] as () => unknown)(), path),
};

function coerced(def: Definition, walk: Walk): boolean {
  return def.coerce === true && walk.side === "input";
}

/** The checks; what comes after a rewriting judges another text than was sent. */
function checksOf(def: Definition): Check[] {
  const all = (def["checks"] ?? []) as Check[];
  const rewriting = all.findIndex(({ kind }) => kind === "trim" || kind === "toLowerCase" || kind === "toUpperCase");
  return rewriting === -1 ? all : all.slice(0, rewriting);
}

function strings(def: Definition): Draft {
  const draft: Draft = { type: "string" };
  for (const check of checksOf(def)) {
    switch (check.kind) {
      case "min":
        draft["minLength"] = check["value"];
        break;
      case "max":
        draft["maxLength"] = check["value"];
        break;
      case "length":
        draft["minLength"] = draft["maxLength"] = check["value"];
        break;
      case "startsWith":
        addPattern(draft, `^${literally(String(check["value"]))}`);
        break;
      case "endsWith":
        addPattern(draft, `${literally(String(check["value"]))}$`);
        break;
      case "includes":
        addPattern(draft, literally(String(check["value"])));
        break;
      case "regex":
        if (isPortable(check["regex"] as RegExp)) addPattern(draft, (check["regex"] as RegExp).source);
        break;
      default:
        formats(draft, check);
    }
  }
  return draft;
}

function formats(draft: Draft, check: Check): void {
  const version = check["version"];
  const name = check.kind === "ip" && version !== undefined ? `ip${String(version)}` : check.kind;
  // Zod 3 takes any group of hexadecimal digits for an offset of its own liking.
  const format = stringFormat(name, { local: check["local"] === true, precision: check["precision"] });
  if (format !== undefined) draft["format"] = format;
  if (check.kind === "ip" && version === undefined) draft["anyOf"] = [{ format: "ipv4" }, { format: "ipv6" }];
}

function numbers(def: Definition): Draft {
  const draft: Draft = { type: "number" };
  for (const check of checksOf(def)) {
    switch (check.kind) {
      case "int":
        draft["type"] = "integer";
        break;
      case "min":
        draft[check["inclusive"] === true ? "minimum" : "exclusiveMinimum"] = check["value"];
        break;
      case "max":
        draft[check["inclusive"] === true ? "maximum" : "exclusiveMaximum"] = check["value"];
        break;
      case "multipleOf":
        draft["multipleOf"] = check["value"];
    }
  }
  return draft;
}

function choices(values: readonly unknown[], kind: string, path: string, walk: Walk): Draft {
  const odd = values.find((value) => !isJson(value));
  if (values.some((value) => !isJson(value))) throw walk.fault(path, kind, `JSON has no ${typeof odd}`);
  return enumeration(values);
}

function arrays(def: Definition, path: string, walk: Walk): Draft {
  const draft: Draft = { type: "array", items: walk.visit(def["type"], `${path}[]`) };
  const size = (keyword: string): unknown => (def[keyword] as { value: number } | null | undefined)?.value;
  const least = size("exactLength") ?? size("minLength");
  const most = size("exactLength") ?? size("maxLength");
  if (least !== undefined) draft["minItems"] = least;
  if (most !== undefined) draft["maxItems"] = most;
  return draft;
}

function objects(def: Definition, path: string, walk: Walk): Draft {
  const shape = (def["shape"] as () => Record<string, Zod3Schema>)();
  const properties: [string, Draft][] = [];
  const required: string[] = [];
  for (const name of Object.keys(shape)) {
    const schema = shape[name];
    const absent = mayBeAbsent(schema, walk);
    const never = isUndefined(schema) && absent;
    properties.push([name, never ? { not: {} } : walk.visit(schema, member(path, name))]);
    if (!absent) required.push(name);
  }
  return objectOf(properties, required, restOf(def, path, walk));
}

function mayBeAbsent(schema: Zod3Schema | undefined, walk: Walk): boolean {
  // What comes out always has a member that has a default.
  const kind = schema?._def.typeName;
  if (walk.side === "output" && (kind === "ZodDefault" || kind === "ZodCatch")) return false;
  try {
    return schema?.isOptional?.() ?? false;
  } catch {
    // A refinement that can not cope with undefined, or has to be awaited.
    return false;
  }
}

/** What an object's other members must be; nothing is said of those that Zod drops. */
function restOf(def: Definition, path: string, walk: Walk): Draft | boolean | undefined {
  const rest = def["catchall"] as Zod3Schema | undefined;
  if (rest !== undefined && rest._def.typeName !== "ZodNever") return walk.visit(rest, `${path}.*`);
  return def["unknownKeys"] === "strict" ? false : undefined;
}

function isUndefined(schema: Zod3Schema | undefined): boolean {
  return schema?._def.typeName === "ZodUndefined" || schema?._def.typeName === "ZodVoid";
}

function unions(def: Definition, path: string, walk: Walk): Draft {
  const options = def["options"] as Iterable<Zod3Schema> | Map<unknown, Zod3Schema>;
  const list = options instanceof Map ? [...options.values()] : [...options];
  const drafts = list
    .map((option, index) => ({ option, path: `${path}|${index}` }))
    // Undefined is said by leaving the member out.
    .filter(({ option }) => !isUndefined(option))
    .map(({ option, path }) => walk.visit(option, path));
  return anyOf(drafts);
}

function tuples(def: Definition, path: string, walk: Walk): Draft {
  const items = (def["items"] as unknown[]).map((item, index) => walk.visit(item, `${path}[${index}]`));
  const rest = def["rest"] === null || def["rest"] === undefined ? undefined : walk.visit(def["rest"], `${path}[]`);
  return tupleOf(items, items.length, rest);
}

function defaults(def: Definition, path: string, walk: Walk): Draft {
  const draft = inner(def, path, walk);
  if (walk.side === "output") return draft;
  const make = def["defaultValue"] as () => unknown;
  const first = make();
  // A default that changes (a time, a random id) says nothing.
  const steady = isJson(first) && JSON.stringify(first) === JSON.stringify(make());
  return steady ? { ...draft, default: first } : draft;
}

function effects(def: Definition, path: string, walk: Walk): Draft {
  const draft = walk.visit(def["schema"], path);
  switch ((def["effect"] as { type?: string } | undefined)?.type) {
    case "preprocess":
      // Before a preprocessing step anything may come; what follows says what it is for.
      return walk.side === "input" ? widened(draft) : draft;
    case "transform":
      // What a transform gives is known to nobody but itself.
      return walk.side === "input" ? draft : {};
    default:
      return draft;
  }
}
