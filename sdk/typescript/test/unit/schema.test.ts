/** What each kind of schema becomes, and what no JSON Schema can carry. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type JsonSchema, type SchemaLike, SchemaConversionError, toJsonSchema } from "brig";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z40 } from "zod40";
import { z as z3 } from "zod3";
import { z as z322 } from "zod322";

enum Direction {
  Up,
  Down,
}

/** Every version, as far as the names are the same in all of them. */
const ALL = { "zod 4": z, "zod 4.0": z40, "zod 3": z3, "zod 3.22": z322 } as unknown as Record<string, typeof z3>;
type Zod = typeof z3;

const SAME: [name: string, make: (z: Zod) => unknown, json: JsonSchema][] = [
  ["string", (z) => z.string(), { type: "string" }],
  ["string with lengths", (z) => z.string().min(1).max(4), { type: "string", minLength: 1, maxLength: 4 }],
  ["string of a length", (z) => z.string().length(3), { type: "string", minLength: 3, maxLength: 3 }],
  ["string by pattern", (z) => z.string().regex(/^a+$/), { type: "string", pattern: "^a+$" }],
  ["string by a pattern with a flag, which only Zod can judge", (z) => z.string().regex(/^a+$/i), { type: "string" }],
  ["string by a pattern that looks around, which only Zod judges", (z) => z.string().regex(/^(?=a)/), { type: "string" }],
  ["string by two patterns", (z) => z.string().regex(/a/).regex(/b/), { type: "string", pattern: "a", allOf: [{ pattern: "b" }] }],
  ["string with a start", (z) => z.string().startsWith("a.b"), { type: "string", pattern: "^a\\.b" }],
  ["string with an end", (z) => z.string().endsWith("-x"), { type: "string", pattern: "\\-x$" }],
  ["checks after a rewriting are Zod's", (z) => z.string().min(2).trim().max(3), { type: "string", minLength: 2 }],
  ["email", (z) => z.string().email(), { type: "string", format: "email" }],
  ["url", (z) => z.string().url(), { type: "string", format: "uri" }],
  ["uuid", (z) => z.string().uuid(), { type: "string", format: "uuid" }],
  ["date and time", (z) => z.string().datetime(), { type: "string", format: "date-time" }],
  ["number", (z) => z.number(), { type: "number" }],
  ["number with bounds", (z) => z.number().min(1).max(5), { type: "number", minimum: 1, maximum: 5 }],
  ["number with open bounds", (z) => z.number().gt(1).lt(5), { type: "number", exclusiveMinimum: 1, exclusiveMaximum: 5 }],
  ["multiple", (z) => z.number().multipleOf(0.5), { type: "number", multipleOf: 0.5 }],
  ["integer", (z) => z.number().int(), { type: "integer" }],
  ["boolean", (z) => z.boolean(), { type: "boolean" }],
  ["null", (z) => z.null(), { type: "null" }],
  ["any", (z) => z.any(), {}],
  ["unknown", (z) => z.unknown(), {}],
  ["never", (z) => z.never(), { not: {} }],
  ["literal", (z) => z.literal("a"), { type: "string", const: "a" }],
  ["literal null", (z) => z.literal(null), { type: "null", const: null }],
  ["enum", (z) => z.enum(["a", "b"]), { type: "string", enum: ["a", "b"] }],
  ["native enum", (z) => z.nativeEnum(Direction), { type: "number", enum: [0, 1] }],
  ["array", (z) => z.array(z.string()).min(1).max(2), { type: "array", items: { type: "string" }, minItems: 1, maxItems: 2 }],
  ["nullable", (z) => z.string().nullable(), { type: ["string", "null"] }],
  [
    "nullable enum",
    (z) => z.enum(["a", "b"]).nullable(),
    { anyOf: [{ type: "string", enum: ["a", "b"] }, { type: "null" }] },
  ],
  ["union of types", (z) => z.union([z.string(), z.number()]), { type: ["string", "number"] }],
  ["union", (z) => z.union([z.string().min(1), z.number()]), { anyOf: [{ type: "string", minLength: 1 }, { type: "number" }] }],
  ["union of literals", (z) => z.union([z.literal("a"), z.literal("b")]), { type: "string", enum: ["a", "b"] }],
  ["intersection", (z) => z.intersection(z.string(), z.any()), { allOf: [{ type: "string" }, {}] }],
  [
    "tuple",
    (z) => z.tuple([z.string(), z.number()]),
    { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false, minItems: 2 },
  ],
  [
    "tuple with a rest",
    (z) => z.tuple([z.string()]).rest(z.number()),
    { type: "array", prefixItems: [{ type: "string" }], items: { type: "number" }, minItems: 1 },
  ],
  ["record", (z) => z.record(z.string(), z.number()), { type: "object", additionalProperties: { type: "number" } }],
  [
    "record with judged names",
    (z) => z.record(z.string().regex(/^x/), z.number()),
    { type: "object", propertyNames: { pattern: "^x" }, additionalProperties: { type: "number" } },
  ],
  ["branded", (z) => z.string().brand("B"), { type: "string" }],
  ["readonly", (z) => z.string().readonly(), { type: "string" }],
  ["refined", (z) => z.string().refine(() => true), { type: "string" }],
  ["transformed", (z) => z.string().transform(Number), { type: "string" }],
  ["piped", (z) => z.string().pipe(z.string()), { type: "string" }],
  ["preprocessed: anything may come", (z) => z.preprocess(Number, z.number()), { anyOf: [{ type: "number" }, {}] }],
  ["caught: anything may come", (z) => z.number().catch(1), { anyOf: [{ type: "number" }, {}] }],
  [
    "coerced number: what Zod coerces may come",
    (z) => z.coerce.number(),
    { anyOf: [{ type: "number" }, { type: ["string", "boolean", "null"] }] },
  ],
  ["coerced boolean", (z) => z.coerce.boolean(), { anyOf: [{ type: "boolean" }, {}] }],
  ["coerced string", (z) => z.coerce.string(), { anyOf: [{ type: "string" }, {}] }],
  ["coerced date", (z) => z.coerce.date(), { type: ["string", "number"] }],
  ["coerced bigint", (z) => z.coerce.bigint(), { type: ["integer", "string", "boolean"] }],
  ["described", (z) => z.string().describe("D"), { type: "string", description: "D" }],
  [
    "object",
    (z) => z.object({ a: z.string(), b: z.number().optional(), c: z.string().default("x"), "d-e": z.string().nullish() }),
    {
      type: "object",
      properties: {
        a: { type: "string" },
        b: { type: "number" },
        c: { type: "string", default: "x" },
        "d-e": { type: ["string", "null"] },
      },
      required: ["a"],
    },
  ],
  ["strict object", (z) => z.object({}).strict(), { type: "object", properties: {}, additionalProperties: false }],
  ["open object", (z) => z.object({}).passthrough(), { type: "object", properties: {} }],
  [
    "object with a catch-all",
    (z) => z.object({}).catchall(z.number()),
    { type: "object", properties: {}, additionalProperties: { type: "number" } },
  ],
  [
    "discriminated union",
    (z) => z.discriminatedUnion("k", [z.object({ k: z.literal("a") }), z.object({ k: z.literal("b"), n: z.number() })]),
    {
      anyOf: [
        { type: "object", properties: { k: { type: "string", const: "a" } }, required: ["k"] },
        {
          type: "object",
          properties: { k: { type: "string", const: "b" }, n: { type: "number" } },
          required: ["k", "n"],
        },
      ],
    },
  ],
];

for (const [version, zod] of Object.entries(ALL)) {
  for (const [name, make, json] of SAME) {
    test(`${version}: ${name}`, () => {
      const schema = zod.object({ x: make(zod) as never });
      const converted = toJsonSchema(schema) as { properties: { x: JsonSchema } };
      assert.deepEqual(plain(converted.properties.x), json);
    });
  }
}

/** Without prototypes, which JSON text has none of. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

const ONLY_4: [name: string, schema: SchemaLike, json: JsonSchema][] = [
  ["iso date", z.iso.date(), { type: "string", format: "date" }],
  ["email of its own", z.email(), { type: "string", format: "email" }],
  ["address", z.ipv4(), { type: "string", format: "ipv4" }],
  ["int", z.int(), { type: "integer" }],
  ["int32", z.int32(), { type: "integer", minimum: -2147483648, maximum: 2147483647 }],
  ["several literals", z.literal(["a", 1, null]), { enum: ["a", 1, null] }],
  ["string of booleans", z.stringbool(), { type: "string" }],
  ["template literal", z.templateLiteral(["a", z.number()]), { type: "string", pattern: "^a-?\\d+(?:\\.\\d+)?$" }],
  ["codec", z.codec(z.string(), z.number(), { decode: Number, encode: String }), { type: "string" }],
  [
    "record over an enum needs every name",
    z.record(z.enum(["a", "b"]), z.number()),
    { type: "object", propertyNames: { enum: ["a", "b"] }, additionalProperties: { type: "number" }, required: ["a", "b"] },
  ],
  [
    "partial record does not",
    z.partialRecord(z.enum(["a", "b"]), z.number()),
    { type: "object", propertyNames: { enum: ["a", "b"] }, additionalProperties: { type: "number" } },
  ],
  [
    "tuple whose end may be absent",
    z.tuple([z.string(), z.number().optional()]),
    { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false, minItems: 1 },
  ],
  ["nothing optional left", z.string().optional().nonoptional(), { type: "string" }],
  ["prefault", z.string().prefault("x"), { type: "string", default: "x" }],
  ["metadata", z.string().meta({ title: "T", examples: ["a"], deprecated: true }), { type: "string", title: "T", examples: ["a"], deprecated: true }],
  ["mini", mini.object({ a: mini.optional(mini.string().check(mini.minLength(2))) }), { type: "object", properties: { a: { type: "string", minLength: 2 } } }],
  ["mini with a description", mini.string().register(mini.globalRegistry, { description: "D" }), { type: "string", description: "D" }],
];

for (const [name, schema, json] of ONLY_4) {
  test(`zod 4 only: ${name}`, () => {
    const converted = toJsonSchema(z.object({ x: schema as z.ZodType })) as { properties: { x: JsonSchema } };
    assert.deepEqual(plain(converted.properties.x), json);
  });
}

test("every version agrees with Zod's own conversion that a nested schema is as it was written", () => {
  const schema = z.object({ a: z.array(z.object({ b: z.union([z.string(), z.null()]), c: z.record(z.string(), z.boolean()) })) });
  const own = z.toJSONSchema(schema, { io: "input" }) as Record<string, unknown>;
  const { $schema: _, ...rest } = own;
  const dropNames = JSON.parse(JSON.stringify(rest), (key, value) => (key === "propertyNames" ? undefined : value)) as unknown;
  assert.deepEqual(plain(toJsonSchema(schema)), dropNames);
});

test("a schema that contains itself becomes a reference, by a getter or by lazy", () => {
  const Category = z.object({
    name: z.string(),
    get children() {
      return z.array(Category);
    },
  });
  assert.deepEqual(plain(toJsonSchema(z.object({ root: Category }))), {
    type: "object",
    properties: { root: { $ref: "#/$defs/Root" } },
    required: ["root"],
    $defs: {
      Root: {
        type: "object",
        properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/Root" } } },
        required: ["name", "children"],
      },
    },
  });
  for (const zod of [z, z3, z322] as unknown as Zod[]) {
    const Node: unknown = zod.object({ next: zod.lazy(() => Node as never).optional() });
    assert.deepEqual(plain(toJsonSchema(Node as SchemaLike)), {
      $ref: "#/$defs/Schema",
      $defs: { Schema: { type: "object", properties: { next: { $ref: "#/$defs/Schema" } } } },
    });
  }
});

test("a schema used in two places is written in both, and a shared recursive one once", () => {
  const Point = z.object({ x: z.number() });
  const converted = plain(toJsonSchema(z.object({ a: Point, b: Point }))) as { $defs?: unknown };
  assert.equal(converted.$defs, undefined);
  const Tree = z.object({
    get kids() {
      return z.array(Tree);
    },
  });
  const two = plain(toJsonSchema(z.object({ a: Tree, b: Tree }))) as { $defs: object; properties: object };
  assert.deepEqual(Object.keys(two.$defs), ["A"]);
  assert.deepEqual(two.properties, { a: { $ref: "#/$defs/A" }, b: { $ref: "#/$defs/A" } });
});

test("a getter that never ends is an error and not a hang", () => {
  const endless = (): z.ZodType => z.object({ x: z.lazy(endless) });
  assert.throws(() => toJsonSchema(endless()), /nested more than 100 levels/);
});

test("what comes out of a schema is converted from its other side", () => {
  const schema = z.object({ a: z.string().default("x"), b: z.date(), c: z.string().transform(Number), d: z.string().pipe(z.coerce.number()) });
  assert.deepEqual(plain(toJsonSchema(schema, "output")), {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "string", format: "date-time" }, c: {}, d: { type: "number" } },
    required: ["a", "b", "c", "d"],
  });
  const old = z3.object({ a: z3.string().default("x"), b: z3.date(), c: z3.string().transform(Number) });
  assert.deepEqual(plain(toJsonSchema(old, "output")), {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "string", format: "date-time" }, c: {} },
    required: ["a", "b", "c"],
  });
});

test("a default that changes is not told", () => {
  for (const zod of [z, z3] as unknown as Zod[]) {
    const converted = toJsonSchema(zod.object({ x: zod.number().default(() => Math.random()) }));
    assert.deepEqual(plain(converted), { type: "object", properties: { x: { type: "number" } } });
  }
});

test("__proto__ is a name like any other", () => {
  const converted = JSON.stringify(toJsonSchema(z.object({ ["__proto__"]: z.string() })));
  assert.match(converted, /"__proto__":\{"type":"string"\}/);
});

type Impossible = [name: string, make: (z: Zod) => unknown, path: string, kind: string];
const IMPOSSIBLE: Impossible[] = [
  ["bigint", (z) => z.object({ a: z.bigint() }), "$.a", "bigint"],
  ["date", (z) => z.object({ a: z.array(z.object({ when: z.date() })) }), "$.a[].when", "date"],
  ["map", (z) => z.object({ a: z.map(z.string(), z.string()) }), "$.a", "map"],
  ["set", (z) => z.object({ "a-b": z.set(z.string()) }), '$["a-b"]', "set"],
  ["symbol", (z) => z.object({ a: z.tuple([z.string(), z.symbol()]) }), "$.a[1]", "symbol"],
  ["NaN", (z) => z.object({ a: z.record(z.string(), z.nan()) }), "$.a.*", "nan"],
  ["undefined", (z) => z.object({ a: z.array(z.undefined()) }), "$.a[]", "undefined"],
  ["promise", (z) => z.object({ a: z.promise(z.string()) }), "$.a", "promise"],
  ["union with a date", (z) => z.object({ a: z.union([z.string(), z.date()]) }), "$.a|1", "date"],
];

for (const [version, zod] of Object.entries(ALL)) {
  for (const [name, make, path, kind] of IMPOSSIBLE) {
    test(`${version}: ${name} is an error that names its path and what to do`, () => {
      assert.throws(
        () => toJsonSchema(make(zod) as SchemaLike),
        (fault) => {
          assert.ok(fault instanceof SchemaConversionError, String(fault));
          assert.deepEqual([fault.path, fault.kind], [path, kind]);
          assert.match(fault.message, /JSON has no/);
          return true;
        },
      );
    });
  }
}

test("zod 4: what only a function can judge, and literals without JSON, are errors with their path", () => {
  const cases: [z.ZodType, string, string][] = [
    [z.object({ a: z.custom<Date>(() => true) }), "$.a", "custom"],
    [z.object({ a: z.instanceof(Date) }), "$.a", "custom"],
    [z.object({ a: z.file() }), "$.a", "file"],
    [z.object({ a: z.literal([1n, "x"]) }), "$.a", "literal"],
    [z.object({ a: z.object({}).catchall(z.date()) }), "$.a.*", "date"],
    [z.object({ a: z.intersection(z.any(), z.set(z.string())) }), "$.a", "set"],
  ];
  for (const [schema, path, kind] of cases) {
    assert.throws(
      () => toJsonSchema(schema),
      (fault) => fault instanceof SchemaConversionError && fault.path === path && fault.kind === kind,
    );
  }
});

test("a kind of schema that is not known is an error", () => {
  const odd = { _zod: { def: { type: "object", shape: { a: { _zod: { def: { type: "quantum" } } } } } }, safeParseAsync: () => undefined };
  assert.throws(() => toJsonSchema(odd as unknown as SchemaLike), /\$\.a \(quantum\): this kind of schema is not known/);
});

test("JSON Schema goes as it is", () => {
  const json = { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: true } } as const;
  assert.equal(toJsonSchema(json), json);
  assert.equal(toJsonSchema(true), true);
});

test("schemas of any library with JSON Schema output do, and others say what is missing", () => {
  assert.deepEqual(toJsonSchema(type({ name: "string", "n?": "number.integer" })), {
    type: "object",
    properties: { name: { type: "string" }, n: { type: "integer" } },
    required: ["name"],
  });
  assert.deepEqual(toJsonSchema(toStandardJsonSchema(v.object({ a: v.optional(v.string()) }))), {
    type: "object",
    properties: { a: { type: "string" } },
    required: [],
  });
  assert.throws(() => toJsonSchema(v.object({ a: v.string() }) as SchemaLike), /valibot.*Standard JSON Schema adapter/);
  const refusing = { "~standard": { version: 1, vendor: "other", validate: () => undefined, jsonSchema: { input: () => { throw new Error("no dates"); } } } };
  assert.throws(() => toJsonSchema(refusing as unknown as SchemaLike), /\$ \(other\): no dates/);
});

test("what is no schema is refused", () => {
  for (const odd of [null, undefined, 5, "string", [], () => 1]) {
    assert.throws(() => toJsonSchema(odd as never), /is neither a schema nor JSON Schema/);
  }
});
