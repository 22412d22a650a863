/**
 * Schemas as handlers declare them: JSON Schema for brigd, and a second look on the host.
 *
 * Owns telling one kind of schema from another, and the parse that gives a handler its
 * defaults, coercions and transforms. Never sends anything.
 */

import { SchemaConversionError } from "../errors.js";
import type { JsonSchema, SchemaLike } from "./infer.js";
import { type Converted, type Draft, type Side, Walk } from "./walk.js";
import { isZod3 } from "./zod3.js";
import { isZod4, metadataOf } from "./zod4.js";

/** One thing that is wrong with a value. */
export interface Issue {
  /** Where, as `$.items[0].name`. */
  readonly path: string;
  readonly message: string;
}

/** What a parse gives. */
export type Parsed = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: Issue[] };

/** A schema, ready for use. */
export interface PreparedSchema {
  /** For brigd. */
  readonly json: JsonSchema;
  /** What `.describe()` said. */
  readonly description: string | undefined;
  /** Judges on the host and applies defaults, coercions and transforms; JSON Schema needs none of it. */
  readonly parse: ((value: unknown) => Promise<Parsed>) | undefined;
}

const prepared: Readonly<Record<Side, WeakMap<object, PreparedSchema>>> = { input: new WeakMap(), output: new WeakMap() };

/**
 * The JSON Schema of any schema, for what goes into it or comes out of it.
 *
 * @throws {SchemaConversionError} naming the path of what JSON Schema can not carry.
 */
export function toJsonSchema(schema: SchemaLike, side: Side = "input"): JsonSchema {
  return prepareSchema(schema, side).json;
}

/** Makes a schema ready for use. */
export function prepareSchema(schema: SchemaLike, side: Side): PreparedSchema {
  if (typeof schema === "boolean") return { json: schema, description: undefined, parse: undefined };
  if (schema === null || (typeof schema !== "object" && typeof schema !== "function")) {
    throw new SchemaConversionError("$", schema === null ? "null" : typeof schema, "is neither a schema nor JSON Schema");
  }
  const known = prepared[side].get(schema);
  if (known !== undefined) return known;
  const fresh = prepareObject(schema, side);
  // JSON Schema is data that its owner may change.
  if (fresh.parse !== undefined) prepared[side].set(schema, fresh);
  return fresh;
}

function prepareObject(schema: object, side: Side): PreparedSchema {
  if (isZod4(schema) || isZod3(schema)) {
    const draft = new Walk(side).root(schema);
    const description = typeof draft["description"] === "string" ? draft["description"] : textOf(metadataOf(schema)["description"]);
    // It is the function's description then, and need not be told twice.
    delete draft["description"];
    return { json: draft, description, parse: parser(schema) };
  }
  const standard = standardOf(schema);
  if (standard !== undefined) return prepareStandard(schema, standard, side);
  if (typeof schema === "function" || Array.isArray(schema)) {
    throw new SchemaConversionError("$", typeof schema, "is neither a schema nor JSON Schema");
  }
  const json = schema as Converted;
  return { json, description: textOf(json["description"]), parse: undefined };
}

interface Standard {
  readonly vendor: string;
  readonly validate: (value: unknown) => unknown;
  readonly jsonSchema?: { readonly [S in Side]?: (options: { target: string }) => unknown };
}

function standardOf(schema: object): Standard | undefined {
  const standard = (schema as { "~standard"?: Partial<Standard> })["~standard"];
  return typeof standard?.validate === "function" ? (standard as Standard) : undefined;
}

function prepareStandard(schema: object, standard: Standard, side: Side): PreparedSchema {
  const convert = standard.jsonSchema?.[side];
  if (convert === undefined) {
    const reason = "has no JSON Schema output; use the library's Standard JSON Schema adapter";
    throw new SchemaConversionError("$", String(standard.vendor), reason);
  }
  let json: unknown;
  try {
    json = convert({ target: "draft-2020-12" });
  } catch (fault) {
    throw new SchemaConversionError("$", String(standard.vendor), fault instanceof Error ? fault.message : String(fault));
  }
  const { $schema: _, description, ...rest } = json as Draft;
  return { json: rest, description: textOf(description), parse: parser(schema) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

type ZodResult = { success: boolean; data?: unknown; error?: { issues?: RawIssue[] } };
type StandardResult = { value?: unknown; issues?: readonly RawIssue[] | undefined };
type RawIssue = { message?: unknown; path?: readonly unknown[] | undefined };

function parser(schema: object): (value: unknown) => Promise<Parsed> {
  const { safeParseAsync } = schema as { safeParseAsync?: unknown };
  if (typeof safeParseAsync === "function") {
    return async (value) => {
      const result = (await (safeParseAsync as (value: unknown) => unknown).call(schema, value)) as ZodResult;
      return result.success ? { ok: true, value: result.data } : { ok: false, issues: (result.error?.issues ?? []).map(issueOf) };
    };
  }
  const standard = standardOf(schema);
  if (standard === undefined) throw new SchemaConversionError("$", "object", "has neither safeParseAsync nor ~standard.validate");
  return async (value) => {
    const result = (await standard.validate(value)) as StandardResult;
    return result.issues === undefined ? { ok: true, value: result.value } : { ok: false, issues: result.issues.map(issueOf) };
  };
}

function issueOf(issue: RawIssue): Issue {
  const path = (issue.path ?? []).reduce<string>((path, step) => {
    const key = typeof step === "object" && step !== null ? (step as { key?: unknown }).key : step;
    return typeof key === "number" ? `${path}[${key}]` : `${path}.${String(key)}`;
  }, "$");
  return { path, message: textOf(issue.message) ?? "is not valid" };
}
