/** What TypeScript infers; a mistake here does not compile. */
import { test } from "node:test";
import { type EvaluateResult, evaluate, type HostCall, hostFunction, type JsonObject, type JsonSchema, type JsonValue } from "brig";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z3 } from "zod3";
import { toStandardJsonSchema } from "@valibot/to-json-schema";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}
/** The same, however it is written. */
type Alike<A, B> = 0 extends 1 & A ? false : [A] extends [B] ? ([B] extends [A] ? true : false) : false;
function alike<A, B>(_: Alike<A, B>): void {}

/** Never called: only its types are looked at. */
export async function inferred(): Promise<void> {
  const result = await evaluate("1", {
    hostFunctions: {
      orders: {
        zod4: {
          inputSchema: z.object({ customer: z.string(), limit: z.number().default(5) }),
          execute: (input, call) => {
            same<typeof input, { customer: string; limit: number }>(true);
            same<typeof call, HostCall>(true);
            return input.limit;
          },
        },
        mini: {
          inputSchema: mini.object({ n: mini.optional(mini.number()) }),
          execute: ({ n }) => {
            same<typeof n, number | undefined>(true);
          },
        },
        destructured: {
          inputSchema: z.object({ when: z.coerce.date() }),
          execute: async ({ when }, { signal }) => {
            same<typeof when, Date>(true);
            signal.throwIfAborted();
            return when.toISOString();
          },
        },
      },
      other: {
        zod3: {
          inputSchema: z3.object({ tags: z3.array(z3.string()), kind: z3.enum(["a", "b"]) }),
          execute: (input) => {
            same<typeof input, { tags: string[]; kind: "a" | "b" }>(true);
            return input.tags;
          },
        },
        arktype: {
          inputSchema: type({ name: "string" }),
          execute: (input) => {
            same<typeof input, { name: string }>(true);
          },
        },
        valibot: {
          inputSchema: toStandardJsonSchema(v.object({ name: v.string() })),
          execute: (input) => {
            same<typeof input, { name: string }>(true);
          },
        },
        json: {
          inputSchema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] } as JsonSchema,
          execute: (input) => {
            same<typeof input, JsonObject>(true);
            return input["id"];
          },
        },
      },
    },
  });
  hostFunction({
    inputSchema: {
      type: "object",
      properties: { id: { type: "string" }, count: { type: "integer" }, kind: { enum: ["x", "y"] }, rest: {} },
      required: ["id"],
    },
    execute: (input) => {
      alike<typeof input, { id: string; count?: number; kind?: "x" | "y"; rest?: JsonValue }>(true);
      return input.id;
    },
  });
  hostFunction({
    inputSchema: { type: "object", properties: { ids: { type: "array", items: { type: "string" } } }, required: ["ids"] },
    execute: (input) => {
      alike<typeof input, { ids: string[] }>(true);
      return input.ids.length;
    },
  });
  same<typeof result, EvaluateResult<JsonValue>>(true);

  const typed = await evaluate<{ total: number }>("1", {
    // With an explicit result type nothing else can be inferred, and nothing has to be annotated.
    hostFunctions: { orders: { list: { inputSchema: z.object({ customer: z.string() }), execute: ({ customer }) => [customer] } } },
  });
  if (typed.outcome === "succeeded") same<typeof typed.value, { total: number }>(true);
  else {
    same<typeof typed.error.code, string>(true);
    same<typeof typed.outcome, "failed" | "timed_out" | "cancelled">(true);
  }

  const inferredFromTheLeft: EvaluateResult<number> = await evaluate("1", {
    hostFunctions: { a: { b: { inputSchema: z.object({ n: z.number() }), execute: ({ n }) => n } } },
  });
  same<typeof inferredFromTheLeft, EvaluateResult<number>>(true);

  const both = hostFunction({
    inputSchema: z.object({ n: z.string().transform(Number) }),
    outputSchema: z.object({ when: z.date(), note: z.string().default("") }),
    execute: ({ n }) => {
      same<typeof n, number>(true);
      return { when: new Date(n) };
    },
  });
  await evaluate<number>("1", { hostFunctions: { a: { both } } });

  hostFunction({
    inputSchema: z.object({}),
    outputSchema: z.object({ id: z.string() }),
    // @ts-expect-error the output is not what outputSchema takes
    execute: () => ({ id: 1 }),
  });
  // @ts-expect-error there is no such option
  await evaluate("1", { timeout: 5 });
  // @ts-expect-error no such scope
  await evaluate("1", { permissions: { hostFunction: "sometimes" } });
  await evaluate("1", {
    // @ts-expect-error a host function needs execute
    hostFunctions: { a: { b: { inputSchema: z.object({}) } } },
  });
}

test("the types of inputs, results and options are inferred as the schemas say", () => {});
