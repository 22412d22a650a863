/** Declarations by a real brigd, against the real compiler and the real validator. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { check, Client, evaluate, type HostFunctions, shutdown } from "brig";
import ts from "typescript";
import { z } from "zod";
import { brigd } from "../brigd.js";
import { valid, wrong } from "../sample.js";

const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGE = join(HERE, "../../..");
const CASES = join(PACKAGE, "../../tests/cases");

interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: object;
  readonly outputSchema?: object;
}
interface Served {
  readonly package: string;
  readonly tools: readonly Tool[];
}
interface Case {
  readonly id: string;
  readonly program?: string;
  readonly variants?: unknown;
  readonly sequence?: unknown;
  readonly generated?: unknown;
  readonly inputs?: object;
  readonly hostFunctions?: { readonly [name: string]: { readonly inputSchema?: object; readonly outputSchema?: object } };
  readonly checks?: readonly { readonly input: unknown; readonly valid: boolean }[];
  readonly expect?: { readonly outcome?: string };
}

const served = JSON.parse(readFileSync(join(PACKAGE, "test/schemas/tools.json"), "utf8")) as Served[];
const cases = existsSync(CASES)
  ? readdirSync(CASES)
      .filter((name) => name.endsWith(".json"))
      .map((name) => JSON.parse(readFileSync(join(CASES, name), "utf8")) as Case)
  : [];

let client: Client;
before(() => {
  delete process.env["BRIG_SOCKET"];
  process.env["BRIGD"] = brigd();
  client = new Client();
});
after(async () => {
  await client.close();
  await shutdown();
});

function functionsOf(tools: readonly Tool[]): HostFunctions {
  const members = tools.map(({ name, description, inputSchema, outputSchema }) => [
    name,
    { description, inputSchema, ...(outputSchema === undefined ? {} : { outputSchema }), execute: () => null },
  ]);
  return { tools: Object.fromEntries(members) } as unknown as HostFunctions;
}

function functionsOfCase(one: Case): HostFunctions {
  const all: { [collection: string]: { [name: string]: unknown } } = {};
  for (const [full, { inputSchema, outputSchema }] of Object.entries(one.hostFunctions ?? {})) {
    const [collection = "", ...rest] = full.split(".");
    const schemas = { ...(inputSchema === undefined ? {} : { inputSchema }), ...(outputSchema === undefined ? {} : { outputSchema }) };
    (all[collection] ??= {})[rest.join(".")] = { ...schemas, execute: () => null };
  }
  return all as unknown as HostFunctions;
}

/** Messages of the compiler on these files, all strict, declarations not excepted. */
function compile(files: Map<string, string>): { file: string; line: number; message: string }[] {
  const options: ts.CompilerOptions = { noEmit: true, strict: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, lib: ["lib.esnext.d.ts"], types: [] };
  const host = ts.createCompilerHost(options, true);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, target) => {
    const own = files.get(name);
    return own === undefined ? getSourceFile(name, target) : ts.createSourceFile(name, own, target, true);
  };
  host.fileExists = (name) => files.has(name) || fileExists(name);
  host.readFile = (name) => files.get(name) ?? readFile(name);
  const program = ts.createProgram([...files.keys()], options, host);
  return ts.getPreEmitDiagnostics(program).map((one) => ({
    file: one.file?.fileName ?? "",
    line: one.file === undefined ? 0 : one.file.getLineAndCharacterOfPosition(one.start ?? 0).line,
    message: ts.flattenDiagnosticMessageText(one.messageText, "\n"),
  }));
}

test("the compiler takes the declarations of every case and of 200 and more real tools", async () => {
  const files = new Map<string, string>();
  for (const one of served) {
    const { declarations } = await client.types(functionsOf(one.tools));
    files.set(`/${one.package.replaceAll(/\W/g, "_")}.ts`, `${declarations}export {};\n`);
  }
  for (const one of cases.filter((one) => one.hostFunctions !== undefined)) {
    const { declarations } = await client.types(functionsOfCase(one));
    files.set(`/${one.id}.ts`, `${declarations}export {};\n`);
  }
  assert.ok(served.reduce((count, one) => count + one.tools.length, 0) >= 200);
  assert.ok(cases.length === 0 || files.size > served.length + 20, "the cases have functions");
  assert.deepEqual(compile(files), []);
});

test("declarations are the same whenever they are asked for", async () => {
  const functions = functionsOf(served[0]?.tools ?? []);
  assert.equal((await client.types(functions)).declarations, (await client.types(functions)).declarations);
});

/** Whether brigd takes these inputs for a function with this schema. */
async function accepted(schema: object, inputs: readonly unknown[]): Promise<boolean[]> {
  const source = `const said = [];
    for (const input of inputs.all) {
      try { await f.f(input); said.push(true); } catch (e) { if (e.code !== "invalid_input") throw e; said.push(false); }
    }
    return said;`;
  const result = await evaluate<boolean[]>(source, {
    inputs: { all: inputs },
    hostFunctions: { f: { f: { inputSchema: schema, execute: () => null } } } as unknown as HostFunctions,
  });
  assert.equal(result.outcome, "succeeded", JSON.stringify(result.error));
  return result.value as boolean[];
}

interface Sample {
  readonly file: string;
  readonly line: number;
  readonly value: unknown;
  readonly accepted: boolean;
}

/** A file whose lines are assignments of the values to the input of a function. */
async function assignments(functions: HostFunctions, call: string, values: readonly unknown[]): Promise<{ text: string; first: number }> {
  const { declarations } = await client.types(functions);
  const head = `${declarations}type Input = NonNullable<Parameters<typeof ${call}>[0]>;\n`;
  const lines = values.map((value, index) => `const v${index}: Input = ${JSON.stringify(value)};`);
  return { text: `${head}${lines.join("\n")}\nexport {};\n`, first: head.split("\n").length - 1 };
}

test("what a schema takes its type takes, and what a schema refuses its type mostly refuses", async () => {
  const files = new Map<string, string>();
  const samples: Sample[] = [];
  const add = async (file: string, functions: HostFunctions, call: string, values: readonly unknown[], oks: readonly boolean[]) => {
    const { text, first } = await assignments(functions, call, values);
    files.set(file, text);
    values.forEach((value, index) => samples.push({ file, line: first + index, value, accepted: oks[index] === true }));
  };
  for (const one of served) {
    for (const tool of one.tools) {
      const schema = tool.inputSchema as { readonly [keyword: string]: any };
      const full = valid(schema, true, schema);
      const values = [valid(schema, false, schema), full, ...wrong(schema, full)];
      const file = `/${`${one.package}_${tool.name}`.replaceAll(/\W/g, "_")}.ts`;
      await add(file, functionsOf([{ ...tool, name: "one" }]), "tools.one", values, await accepted(schema, values));
    }
  }
  for (const one of cases.filter((one) => one.checks !== undefined)) {
    const checks = one.checks ?? [];
    const [call = "", { inputSchema = {} } = {}] = Object.entries(one.hostFunctions ?? {})[0] ?? [];
    const values = checks.map((check) => check.input);
    await add(`/${one.id}.ts`, functionsOfCase(one), call, values, await accepted(inputSchema, values));
  }
  const errors = new Map(compile(files).map((one) => [`${one.file}:${one.line}`, one.message]));
  // A member that a schema does not speak of is an error on purpose, where it is written.
  const meant = /Object literal may only specify known properties/;
  const refusedValid = samples.filter((one) => one.accepted && !meant.test(errors.get(`${one.file}:${one.line}`) ?? "")).filter((one) => errors.has(`${one.file}:${one.line}`));
  const told = refusedValid.map((one) => `${one.file} ${JSON.stringify(one.value)}: ${errors.get(`${one.file}:${one.line}`)}`);
  assert.deepEqual(told, []);
  const invalid = samples.filter((one) => !one.accepted);
  const caught = invalid.filter((one) => errors.has(`${one.file}:${one.line}`));
  const missed = invalid.filter((one) => !caught.includes(one)).map((one) => `${one.file} ${JSON.stringify(one.value)}`);
  assert.ok(samples.length - invalid.length > 400 && invalid.length > 800, `${samples.length} samples, ${invalid.length} invalid`);
  assert.ok(caught.length / invalid.length > 0.95, `${caught.length} of ${invalid.length}; missed\n${missed.join("\n")}`);
});

const orders = {
  orders: {
    list: {
      inputSchema: z.object({ customer: z.string(), status: z.enum(["open", "closed"]).optional() }),
      outputSchema: z.array(z.object({ id: z.string(), amount: z.number() })),
      execute: () => [{ id: "o1", amount: 42 }],
    },
  },
};

test("type errors have the place in the program's own lines, in every form", async () => {
  for (const [source, line, column, message] of [
    ["const all = await orders.list({customer: 1});\nreturn all.length", 1, 32, /'number' is not assignable to type 'string'/],
    ["// one\nconst all = await orders.list({customer: 'c'});\nreturn all[0].amuont", 3, 15, /amuont.*amount/],
    ["(\n  orders.lst({})\n)", 2, 10, /lst.*list/],
    ["async () => {\n  return await orders.list({ customer: 'c', status: 'opn' });\n}", 2, 45, /"opn"/],
    ["export default async function () {\n  return orders.list();\n}", 2, 17, /Expected 1 arguments/],
    ["Here it is:\n```js\nconst x = await orders.list({});\n```\n", 3, 29, /customer/],
    ["const n: number = await orders.list({customer: 'c'});\r\nn", 1, 7, /is not assignable to type 'number'/],
    ["return fetch('https://example.com')", 1, 8, /fetch/],
  ] as const) {
    const result = await check(source, { hostFunctions: orders });
    assert.ok(!result.ok, source);
    const [first] = result.errors;
    assert.deepEqual([first?.code, first?.line, first?.column], ["type_error_check", line, column], `${source}: ${JSON.stringify(result.errors)}`);
    assert.match(first?.message ?? "", message, source);
    assert.ok(first?.excerpt?.includes(source.split(/\r?\n/)[line - 1] ?? "?"), first?.excerpt);
  }
});

test("programs that are right have no type errors", async () => {
  for (const source of [
    "(await orders.list({ customer: inputs.customer })).reduce((sum, one) => sum + one.amount, 0)",
    "const totals = {};\nfor (const one of await orders.list({ customer: 'c' })) totals[one.id] = (totals[one.id] ?? 0) + one.amount;\ntotals",
    "try { await orders.list({ customer: 'c' }) } catch (e) { if (e instanceof HostError) console.error(e.code, e.message); throw e }",
    "function double(x) { return x * 2 }\nreturn double(21)",
    "interface Total { sum: number }\nconst total: Total = { sum: 0 };\nreturn total",
    "const found = (await orders.list({ customer: 'c' })).find((one) => one.id === 'o1');\nreturn found.amount",
    "new URL('https://example.com/?a=1').searchParams.get('a')",
    "async () => { const [a, b] = await Promise.all([orders.list({ customer: 'a' }), orders.list({ customer: 'b' })]); return [...a, ...b] }",
  ]) {
    assert.deepEqual(await check(source, { hostFunctions: orders }), { ok: true }, source);
  }
});

test("a program that does not parse is told as brigd tells it", async () => {
  const result = await check("const = 1", { hostFunctions: orders });
  assert.ok(!result.ok);
  assert.equal(result.errors[0]?.code, "syntax_error");
  assert.equal(result.error, result.errors[0]);
});

test("evaluate with check does not run what does not type-check", async () => {
  let calls = 0;
  const counted = { orders: { list: { ...orders.orders.list, execute: () => (calls++, [{ id: "o1", amount: 42 }]) } } };
  const source = "await orders.list({ customer: 'c' });\nreturn await orders.list({ customer: 5 })";
  const refused = await evaluate(source, { check: true, hostFunctions: counted });
  assert.equal(refused.outcome, "failed");
  assert.deepEqual([refused.error?.code, refused.error?.line, calls, refused.calls], ["type_error_check", 2, 0, []]);
  const ran = await evaluate(source, { hostFunctions: counted });
  assert.deepEqual([ran.outcome, ran.error?.code, calls], ["failed", "guest_error", 1], "without check it runs up to there");
  const right = await evaluate("(await orders.list({ customer: 'c' }))[0].amount", { check: true, hostFunctions: counted });
  assert.deepEqual([right.outcome, right.value], ["succeeded", 42]);
});

test("check on the wire is unsupported, and says who can", async () => {
  await assert.rejects(client.request("evaluate", { source: "1", check: true }), (fault: { code: string; hint?: string }) => {
    assert.equal(fault.code, "unsupported");
    assert.match(fault.hint ?? "", /SDK/);
    return true;
  });
});

test("programs of the cases that succeed have no type errors", async () => {
  // B91 sends wrong inputs on purpose, to read what it is told.
  const programs = cases.filter((one) => one.id !== "B91-validation-error-is-repairable" && typeof one.program === "string" && one.expect?.outcome === "succeeded" && one.hostFunctions !== undefined);
  const told: string[] = [];
  for (const one of programs) {
    const result = await check(one.program ?? "", { hostFunctions: functionsOfCase(one) });
    if (!result.ok) told.push(`${one.id}: ${result.errors.map((error) => `${error.line}: ${error.message}`).join("; ")}`);
  }
  assert.ok(cases.length === 0 || programs.length > 15, `${programs.length} programs`);
  assert.deepEqual(told, []);
});
