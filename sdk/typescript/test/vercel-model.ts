/** Run with one version of the AI SDK as `ai`, which the first argument names: says so when all is well. */
import assert from "node:assert/strict";
import * as ai from "ai";
import * as mocks from "ai/test";
import { connect, type HostFunctions } from "brig";
import { brigTool } from "brig/adapters/vercel";
import { z } from "zod";
import { type Asked, type Said, scripted } from "./mock-models.js";

const version = Number(process.argv[2]);
// The types are those of one version; each has the model of its own protocol.
const { generateText, stepCountIs } = ai as unknown as { generateText: (options: object) => Promise<{ text: string }>; stepCountIs: (count: number) => unknown };
const protocol = (version - 3) as 2 | 3 | 4;
const Model = (mocks as unknown as Record<string, new (options: object) => object>)[`MockLanguageModelV${protocol}`];
assert.ok(Model !== undefined, `the AI SDK ${version} has no MockLanguageModelV${protocol}`);

const hostFunctions = {
  orders: {
    list: {
      inputSchema: z.object({ customer: z.string() }).describe("List a customer's orders."),
      outputSchema: z.array(z.object({ amount: z.number() })),
      effect: "read",
      execute: () => [{ amount: 40 }, { amount: 2 }],
    },
  },
} satisfies HostFunctions;

const says: Said[] = [
  { tool: "execute", input: { source: "const a = 1;\nawait orders.list({ customer: 5 })" } },
  { tool: "execute", input: { source: "const list = await orders.list({ customer: 'c' });\nreturn list.reduce((sum, order) => sum + order.amount, 0)" } },
  { text: "It is 42." },
];
const asked: Asked[] = [];
const client = await connect();
const { text } = await generateText({
  model: new Model({ doGenerate: scripted(protocol, says, asked) }),
  tools: { execute: await brigTool(client, { hostFunctions, timeoutMs: 10_000 }) },
  prompt: "What is the sum?",
  stopWhen: stepCountIs(5),
});
await client.close();

assert.equal(text, "It is 42.");
const [first, failed, succeeded] = asked;
const [offered, ...others] = first?.tools ?? [];
assert.deepEqual([offered?.name, others], ["execute", []]);
assert.match(offered?.description ?? "", /declare const orders: \{[^]*List a customer's orders\.[^]*list\(input: \{ customer: string \}\): Promise</);
assert.deepEqual([offered?.inputSchema.required, Object.keys(offered?.inputSchema.properties)], [["source"], ["source"]]);

/** What the tool answered to the call before this request. */
function answerIn(asked: Asked | undefined): { type: string; value: any } {
  const last = asked?.prompt.at(-1);
  assert.equal(last?.role, "tool");
  return last.content[0].output as { type: string; value: any };
}

const { type, value } = answerIn(failed);
assert.equal(type, "json", JSON.stringify(value));
assert.deepEqual([value.outcome, value.error.code, value.error.line], ["failed", "guest_error", 2]);
assert.match(value.error.message, /customer/);
assert.match(value.error.excerpt, /await orders\.list/);
assert.deepEqual(value.calls, [{ function: "orders.list", state: "refused", code: "invalid_input" }]);
assert.deepEqual(answerIn(succeeded), { type: "json", value: { outcome: "succeeded", value: 42 } });
console.log(`AI SDK ${version}: as it should be`);
