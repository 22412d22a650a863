/** The tool for the AI SDK, under the AI SDK itself, with models that do what they are told. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as ai from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { Client, connect, type HostFunctions } from "brig";
import { brigTool } from "brig/adapters/vercel";
import { z } from "zod";
import { brigd } from "../brigd.js";
import { type Asked, scripted } from "../mock-models.js";

const run = promisify(execFile);
const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGE = join(HERE, "../../..");

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

/** The versions of the AI SDK that the peer dependency names, by the package that is one here. */
const VERSIONS = { 5: "ai5", 6: "ai", 7: "ai7" };

for (const [version, name] of Object.entries(VERSIONS)) {
  test(`a model of the AI SDK ${version} runs programs with one tool, and repairs those that fail`, { timeout: 120_000 }, async () => {
    // A project that has this version, and this package as it is published.
    const folder = mkdtempSync(join(tmpdir(), "brig-ai-"));
    try {
      const packages = join(folder, "node_modules");
      cpSync(join(PACKAGE, "dist"), join(packages, "brig/dist"), { recursive: true });
      cpSync(join(PACKAGE, "package.json"), join(packages, "brig/package.json"));
      symlinkSync(join(PACKAGE, "node_modules", name), join(packages, "ai"));
      symlinkSync(join(PACKAGE, "node_modules/zod"), join(packages, "zod"));
      writeFileSync(join(folder, "package.json"), '{"type":"module"}');
      for (const file of ["mock-models.js", "vercel-model.js"]) cpSync(join(HERE, "..", file), join(folder, file));
      const { stdout } = await run(process.execPath, ["vercel-model.js", version], { cwd: folder });
      assert.equal(stdout, `AI SDK ${version}: as it should be\n`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** What the tool answered to the call before this request. */
function answerIn({ prompt }: Asked): { type: string; value: any } {
  const last = prompt.at(-1);
  assert.equal(last?.role, "tool");
  return last.content[0].output as { type: string; value: any };
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
