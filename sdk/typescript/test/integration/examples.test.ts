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

/** Compiles TypeScript text strictly, runs it, and gives what it printed. */
async function compileAndRun(name: string, text: string): Promise<string> {
  const file = join(SCRATCH, `${name}.ts`);
  writeFileSync(file, text);
  const options = ["--strict", "--target", "ES2022", "--module", "NodeNext", "--types", "node"];
  const compiler = join(PACKAGE, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [compiler, ...options, file], { cwd: PACKAGE }).catch((fault: { stdout?: string }) => {
    throw new Error(`${name} does not compile:\n${fault.stdout ?? ""}\n${text}`);
  });
  return node(join(SCRATCH, `${name}.js`));
}

before(() => mkdirSync(SCRATCH, { recursive: true }));
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
  const found = blocks(readFileSync(join(PACKAGE, "README.md"), "utf8"));
  assert.ok(found.length >= 4, `${found.length} blocks`);
  for (const [index, block] of found.entries()) await runsAsSaid(`readme-${index}`, block);
});

test("the README's block about vms does so too", async () => {
  const [block = ""] = blocks(readFileSync(join(PACKAGE, "README.md"), "utf8"), "typescript");
  await runsAsSaid("readme-vm", block);
});

async function runsAsSaid(name: string, block: string): Promise<void> {
  const printed = await compileAndRun(name, block);
  const said = [...block.matchAll(/\/\/ prints (.*)$/gm)].map(([, text]) => text);
  assert.deepEqual(printed === "" ? [] : printed.split("\n"), said, block);
}

const IMPORTS = 'import { evaluate } from "brig";\nimport { z } from "zod";\n';

test("the programs of the seed documents run with nothing changed but the import, where they are", { skip: !existsSync(SEEDS) && "no seed documents here" }, async () => {
  const hostFunctions = blocks(readFileSync(join(SEEDS, "host-functions.md"), "utf8"));
  // The document shows the call before the program that it sends.
  const [call = "", program = ""] = hostFunctions;
  assert.equal(await compileAndRun("seed-host-functions", `${IMPORTS}${program}${call}`), "42");
  const codeMode = blocks(readFileSync(join(SEEDS, "code-mode.md"), "utf8"));
  assert.equal(await compileAndRun("seed-code-mode", `${IMPORTS}${codeMode.join("\n")}`), "{ refunded: 1, total: 2 }");
});
