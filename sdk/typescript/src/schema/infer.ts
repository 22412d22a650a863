/**
 * What TypeScript can tell from a schema.
 *
 * Owns types only; nothing here exists at run time. Schemas are recognised by their
 * shape, so that no library is imported and every copy of one will do.
 */

import type { JsonObject, JsonValue } from "../json.js";

/** A Zod 4 schema, of the full or the mini package. */
export interface Zod4Like<Output = unknown, Input = unknown> {
  readonly _zod: { readonly output: Output; readonly input: Input };
}

/** A Zod 3 schema. */
export interface Zod3Like<Output = unknown, Input = unknown> {
  readonly _output: Output;
  readonly _input: Input;
  readonly _def: unknown;
}

/** A schema of any library that implements Standard Schema. */
export interface StandardLike<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** JSON Schema as data, draft 7 or 2020-12. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown };

/** Anything that can stand as `inputSchema` or `outputSchema`. */
export type SchemaLike = Zod4Like | Zod3Like | StandardLike | JsonSchema;

/** What a handler gets when its input was judged by `S`. */
export type ParsedBy<S> = unknown extends S
  ? any
  : S extends Zod4Like<infer Output>
    ? Output
    : S extends Zod3Like<infer Output>
      ? Output
      : S extends StandardLike<unknown, infer Output>
        ? Output
        : FromJsonSchema<S, JsonObject>;

/** What a handler may give back when its output is judged by `S`. */
export type AcceptedBy<S> = unknown extends S
  ? any
  : S extends Zod4Like<unknown, infer Input>
    ? Input
    : S extends Zod3Like<unknown, infer Input>
      ? Input
      : S extends StandardLike<infer Input, unknown>
        ? Input
        : FromJsonSchema<S, unknown>;

/** The names in `required`. */
type Required<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;

type Flatten<T> = { [K in keyof T]: T[K] };

type Members<P, R> = Flatten<
  { -readonly [K in keyof P as K extends R ? K : never]: FromJsonSchema<P[K], JsonValue> } & {
    -readonly [K in keyof P as K extends R ? never : K]?: FromJsonSchema<P[K], JsonValue>;
  }
>;

type Named<T> = T extends "string"
  ? string
  : T extends "number" | "integer"
    ? number
    : T extends "boolean"
      ? boolean
      : T extends "null"
        ? null
        : T extends "array"
          ? JsonValue[]
          : T extends "object"
            ? JsonObject
            : JsonValue;

/**
 * The type that a JSON Schema describes, as far as that is worth following: `const`,
 * `enum`, `anyOf`, `oneOf`, objects, arrays and named types. `Unknown` stands for the rest.
 */
export type FromJsonSchema<S, Unknown> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly anyOf: readonly (infer Option)[] }
      ? FromJsonSchema<Option, JsonValue>
      : S extends { readonly oneOf: readonly (infer Option)[] }
        ? FromJsonSchema<Option, JsonValue>
        : S extends { readonly type: "object"; readonly properties: infer P }
          ? Members<P, Required<S>>
          : S extends { readonly type: "array"; readonly items: infer Item }
            ? FromJsonSchema<Item, JsonValue>[]
            : S extends { readonly type: readonly (infer Name)[] }
              ? Named<Name>
              : S extends { readonly type: infer Name extends string }
                ? string extends Name
                  ? Unknown
                  : Named<Name>
                : Unknown;
