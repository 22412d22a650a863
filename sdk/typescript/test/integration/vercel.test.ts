/** The tool for the AI SDK, under the AI SDK itself, with models that do what they are told. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as ai from "ai";
import * as ai5 from "ai5";
import * as ai7 from "ai7";
import { MockLanguageModelV3 } from "ai/test";
import { MockLanguageModelV2 } from "ai5/test";
import { MockLanguageModelV4 } from "ai7/test";
import { Client, connect, type HostFunctions } from "brig";
import { brigTool } from "brig/adapters/vercel";
import { z } from "zod";
import { brigd } from "../brigd.js";
import { type Asked, type Said, scripted } from "../mock-models.js";

let client: Client;
before(async () => {
  delete process.env["BRIG_SOCKET"];
  process.env["BRIGD"] = brigd();
  client = await connect();
});
after(() => client.close());

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
const PROGRAM = "const list = await orders.list({ customer: 'c' });\nreturn list.reduce((sum, order) => sum + order.amount, 0)";

/** The versions of the AI SDK that the peer dependency names. */
const VERSIONS = [
  { name: "5", ...ai5, model: (says: Said[], asked: Asked[]) => new MockLanguageModelV2({ doGenerate: scripted(2, says, asked) }) },
  { name: "6", ...ai, model: (says: Said[], asked: Asked[]) => new MockLanguageModelV3({ doGenerate: scripted(3, says, asked) }) },
  { name: "7", ...ai7, model: (says: Said[], asked: Asked[]) => new MockLanguageModelV4({ doGenerate: scripted(4, says, asked) }) },
] as unknown as { name: string; generateText: (options: any) => Promise<any>; stepCountIs: (count: number) => unknown; model: (says: Said[], asked: Asked[]) => unknown }[];

/** What the tool answered to the call before this request. */
function answerIn({ prompt }: Asked): { type: string; value: any } {
  const last = prompt.at(-1);
  assert.equal(last?.role, "tool");
  return last.content[0].output as { type: string; value: any };
}

for (const { name, generateText, stepCountIs, model } of VERSIONS) {
  test(`a model of the AI SDK ${name} runs programs with one tool, and repairs those that fail`, async () => {
    const asked: Asked[] = [];
    const says: Said[] = [
      { tool: "execute", input: { source: "const a = 1;\nawait orders.list({ customer: 5 })" } },
      { tool: "execute", input: { source: PROGRAM } },
      { text: "It is 42." },
    ];
    const tools = { execute: await brigTool(client, { hostFunctions, timeoutMs: 10_000 }) };
    const { text } = await generateText({ model: model(says, asked), tools, prompt: "What is the sum?", stopWhen: stepCountIs(5) });
    assert.equal(text, "It is 42.");
    const [offered, ...others] = asked[0]?.tools ?? [];
    assert.deepEqual([offered?.name, others], ["execute", []]);
    assert.match(offered?.description ?? "", /declare const orders: \{[^]*List a customer's orders\.[^]*list\(input: \{ customer: string \}\): Promise</);
    assert.deepEqual([offered?.inputSchema.required, Object.keys(offered?.inputSchema.properties)], [["source"], ["source"]]);
    const failed = answerIn(asked[1] as Asked);
    assert.equal(failed.type, "json", JSON.stringify(failed));
    assert.deepEqual([failed.value.outcome, failed.value.error.code, failed.value.error.line], ["failed", "guest_error", 2]);
    assert.match(failed.value.error.message, /customer/);
    assert.match(failed.value.error.excerpt, /await orders\.list/);
    assert.deepEqual(failed.value.calls, [{ function: "orders.list", state: "refused", code: "invalid_input" }]);
    assert.deepEqual(answerIn(asked[2] as Asked), { type: "json", value: { outcome: "succeeded", value: 42 } });
  });
}

/** What the tool answers to a program by itself. */
async function answers(source: string, options: Parameters<typeof brigTool>[1] = {}, abortSignal?: AbortSignal): Promise<any> {
  const { execute } = await brigTool(client, options);
  assert.ok(execute !== undefined);
  return execute({ source }, { toolCallId: "1", messages: [], ...(abortSignal === undefined ? {} : { abortSignal }) });
}

test("the program ends when the model's request is aborted, and its calls with it", async () => {
  const stop = new AbortController();
  let told: (reason: unknown) => void;
  const over = new Promise<unknown>((resolve) => (told = resolve));
  const wait = (_: unknown, { signal }: { signal: AbortSignal }): Promise<never> =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => (told(signal.reason), reject(signal.reason)));
      stop.abort();
    });
  const asked: Asked[] = [];
  const tools = { execute: await brigTool(client, { hostFunctions: { a: { wait: { execute: wait } } } }) };
  const model = new MockLanguageModelV3({ doGenerate: scripted(3, [{ tool: "execute", input: { source: "await a.wait({})" } }, { text: "" }], asked) });
  const answer = await ai.generateText({ model, tools, prompt: "Wait.", abortSignal: stop.signal }).catch((fault: unknown) => fault as Error);
  assert.match(String(await over), /AbortError/);
  if (!(answer instanceof Error)) assert.equal((answer.toolResults[0]?.output as { outcome: string } | undefined)?.outcome, "cancelled");
  assert.equal((await answers("await a.wait({})", { hostFunctions: { a: { wait: { execute: wait } } } }, AbortSignal.abort())).outcome, "cancelled");
});

test("an answer has what a model needs, and nothing that is empty", async () => {
  assert.deepEqual(await answers("undefined"), { outcome: "succeeded" });
  assert.deepEqual(await answers("null"), { outcome: "succeeded", value: null });
  assert.deepEqual(await answers("console.log('a'); console.error('b'); 10n"), {
    outcome: "succeeded",
    value: "10",
    stdout: "a\n",
    stderr: "b\n",
    warnings: ["$: a BigInt became its decimal digits, as a string"],
  });
  const failed = await answers("await orders.list({ customer: 'c' }); throw new Error('no')", { hostFunctions });
  assert.deepEqual(Object.keys(failed), ["outcome", "error", "calls"]);
  assert.equal("stack" in failed.error, false);
  assert.deepEqual(failed.calls, [{ function: "orders.list", state: "completed" }]);
});

test("with check a program with type errors is answered, and does not run", async () => {
  let ran = 0;
  const counted = { orders: { list: { ...hostFunctions.orders.list, execute: () => (ran++, []) } } };
  const answer = await answers("await orders.list({ customer: 'c' });\nawait orders.lst({})", { hostFunctions: counted, check: true });
  assert.deepEqual([answer.outcome, answer.error.code, answer.error.line, ran], ["failed", "type_error_check", 2, 0]);
});

test("options hold for every program, and what is for one evaluation only is refused", async () => {
  const narrowed = { hostFunctions, permissions: { hostFunction: "deny" }, limits: { hostCalls: 5 } } as const;
  assert.equal((await answers("await orders.list({ customer: 'c' })", narrowed)).calls[0].code, "permission_denied");
  await assert.rejects(brigTool(client, { signal: AbortSignal.abort() } as object), /brigTool has no option "signal"/);
  await assert.rejects(answers("1", { odd: 1 } as object), /evaluate has no option "odd"/);
});

test("a description of one's own is told as it is; brigd's names what is offered", async () => {
  assert.equal((await brigTool(client, { hostFunctions, description: "Runs it." })).description, "Runs it.");
  const { description } = await brigTool(client, { collections: [] });
  assert.match(description ?? "", /There is no network/);
});

test("what is no program is told to the model, and not to brigd", async () => {
  const { inputSchema } = await brigTool(client);
  const { validate } = ai.asSchema(inputSchema);
  for (const input of [{}, { source: 5 }, null, "1"]) {
    const judged = await validate?.(input);
    assert.ok(judged?.success === false && /"source"/.test(judged.error.message), JSON.stringify(input));
  }
});

test("a brigd that is gone is an error of the tool, which the model is told", async () => {
  const gone = await connect();
  const tools = { execute: await brigTool(gone) };
  await gone.close();
  const asked: Asked[] = [];
  const model = new MockLanguageModelV3({ doGenerate: scripted(3, [{ tool: "execute", input: { source: "1" } }, { text: "ok" }], asked) });
  await ai.generateText({ model, tools, prompt: "Go.", stopWhen: ai.stepCountIs(2) });
  const { type, value } = answerIn(asked[1] as Asked);
  assert.match(`${type} ${JSON.stringify(value)}`, /error.*the client was closed/);
});
