/** Examples, README and seed documents, run as a reader would. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brigd } from "../brigd.js";

const run = promisify(execFile);
const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const SCRATCH = join(PACKAGE, "build/snippets");
/** Where the seed documents may lie; they are run as they stand where they do. */
const SEEDS = process.env["BRIG_SEEDS"] ?? join(PACKAGE, "../../../shared/seeds");
const ENV = { ...process.env, BRIG_SOCKET: "", BRIGD: brigd() };

async function node(file: string): Promise<string> {
  const { stdout } = await run(process.execPath, [file], { env: ENV, cwd: PACKAGE, timeout: 120_000 });
  return stdout.trim();
}

/** Compiles TypeScript texts strictly, all at once, and runs them one by one: what each printed. */
async function compileAndRun(texts: Record<string, string>): Promise<string[]> {
  const names = Object.keys(texts);
  for (const name of names) writeFileSync(join(SCRATCH, `${name}.ts`), texts[name] ?? "");
  const options = ["--strict", "--skipLibCheck", "--target", "ES2022", "--module", "NodeNext", "--moduleDetection", "force", "--types", "node"];
  const compiler = join(PACKAGE, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [compiler, ...options, ...names.map((name) => join(SCRATCH, `${name}.ts`))], { cwd: PACKAGE }).catch((fault: { stdout?: string }) => {
    throw new Error(`what does not compile:\n${fault.stdout ?? ""}`);
  });
  const printed: string[] = [];
  for (const name of names) printed.push(await node(join(SCRATCH, `${name}.js`)));
  return printed;
}

/** The model that the README's example asks for: it writes one program, and reads its answer. */
const MODEL = `import { MockLanguageModelV3 } from "ai/test";
const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const source = "const all = await orders.list({ customer: 'c_1' }); all.reduce((sum, one) => sum + one.amount, 0)";
export const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    const part = last?.role === "tool" ? last.content[0] : undefined;
    if (part?.type !== "tool-result" || part.output.type !== "json") {
      const call = { type: "tool-call" as const, toolCallId: "1", toolName: "execute", input: JSON.stringify({ source }) };
      return { content: [call], finishReason: { unified: "tool-calls" as const, raw: undefined }, usage, warnings: [] };
    }
    const { value } = part.output.value as { value: number };
    return { content: [{ type: "text" as const, text: \`They spent \${value}.\` }], finishReason: { unified: "stop" as const, raw: undefined }, usage, warnings: [] };
  },
});
`;

before(() => {
  mkdirSync(SCRATCH, { recursive: true });
  writeFileSync(join(SCRATCH, "model.ts"), MODEL);
});
after(() => rmSync(SCRATCH, { recursive: true, force: true }));

test("the example of host functions prints the customer's total", async () => {
  assert.equal(await node("build/examples/host-functions.js"), "42");
});

test("the example of Code Mode refunds what is pending", async () => {
  assert.equal(await node("build/examples/code-mode.js"), '{"refunded":1,"total":2}');
});

/** The TypeScript blocks of a document. */
function blocks(document: string, fence = "ts"): string[] {
  return [...document.matchAll(new RegExp(`^\`\`\`${fence}\\n(.*?)^\`\`\``, "gms"))].map(([, block]) => block ?? "");
}

test("every TypeScript block of the README compiles and runs, and prints what it says", async () => {
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const found = blocks(readme, "(?:ts|typescript)");
  assert.ok(found.length >= 8, `${found.length} blocks`);
  const printed = await compileAndRun(Object.fromEntries(found.map((block, index) => [`readme-${index}`, block])));
  for (const [index, block] of found.entries()) {
    const said = [...block.matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => text);
    const lines = printed[index] === "" ? [] : printed[index]?.split("\n");
    assert.deepEqual(lines, said, block);
  }
});

const IMPORTS = 'import { evaluate } from "brig";\nimport { z } from "zod";\n';

test("the programs of the seed documents run with nothing changed but the import, where they are", { skip: !existsSync(SEEDS) && "no seed documents here" }, async () => {
  const hostFunctions = blocks(readFileSync(join(SEEDS, "host-functions.md"), "utf8"));
  // The document shows the call before the program that it sends.
  const [call = "", program = ""] = hostFunctions;
  const codeMode = blocks(readFileSync(join(SEEDS, "code-mode.md"), "utf8"));
  const texts = { "seed-host-functions": `${IMPORTS}${program}${call}`, "seed-code-mode": `${IMPORTS}${codeMode.join("\n")}` };
  assert.deepEqual(await compileAndRun(texts), ["42", "{ refunded: 1, total: 2 }"]);
});
