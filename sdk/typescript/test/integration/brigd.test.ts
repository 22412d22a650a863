/** Through a real brigd and real workers. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BrigError, check, Client, connect, createVm, evaluate, HostFunctionError, type HostFunctions, shutdown } from "brig";
import { z } from "zod";
import { z as z3 } from "zod3";
import { brigd } from "../brigd.js";

const run = promisify(execFile);
const HERE = dirname(fileURLToPath(import.meta.url));

/** Without a service and without a socket in the environment: a private brigd. */
const ENV = { ...process.env, BRIG_SOCKET: "", BRIGD: brigd() };

before(() => {
  delete process.env["BRIG_SOCKET"];
});
after(shutdown);

test("a value, and what it cost", async () => {
  const result = await evaluate<number>("return inputs.a + 1", { inputs: { a: 1 } });
  assert.equal(result.outcome, "succeeded", JSON.stringify(result));
  assert.equal(result.value, 2);
  assert.match(result.evaluation, /^ev_/);
  assert.ok(result.usage.wallMs > 0);
  assert.ok(result.sandbox.layers.includes("seccomp"), JSON.stringify(result.sandbox));
});

test("no value is absent, and null is one", async () => {
  assert.equal("value" in (await evaluate("undefined")), false);
  assert.equal((await evaluate("null")).value, null);
});

test("host functions run here, with defaults, coercions and transforms applied", async () => {
  const seen: unknown[] = [];
  const result = await evaluate("return [await a.four({ n: '41' }), await a.three({ tags: ['x'] }), await a.json({ id: 7 }), await a.nothing()]", {
    hostFunctions: {
      a: {
        four: {
          inputSchema: z.object({ n: z.coerce.number(), limit: z.number().int().default(1), when: z.coerce.date().optional() }),
          outputSchema: z.object({ sum: z.number() }),
          execute: (input) => {
            seen.push(input);
            return { sum: input.n + input.limit, secret: "s" };
          },
        },
        three: {
          inputSchema: z3.object({ tags: z3.array(z3.string()).transform((tags) => new Set(tags)) }),
          execute: ({ tags }) => tags.has("x"),
        },
        json: {
          inputSchema: { type: "object", properties: { id: { type: "integer" } }, required: ["id"], additionalProperties: false },
          execute: (input) => {
            seen.push(input);
            return null;
          },
        },
        nothing: { execute: (input) => input as object },
      },
    },
  });
  assert.equal(result.outcome, "succeeded", JSON.stringify(result));
  assert.deepEqual(result.value, [{ sum: 42 }, true, null, {}]);
  assert.deepEqual(seen, [{ n: 41, limit: 1 }, { id: 7 }]);
  assert.deepEqual(
    result.calls.map(({ function: name, state }) => [name, state]),
    [["a.four", "completed"], ["a.three", "completed"], ["a.json", "completed"], ["a.nothing", "completed"]],
  );
});

/** Programs call `f` of this schema with what they are given; which inputs are taken. */
const ACCEPTED: [name: string, schema: z.ZodType, taken: unknown[], refused: unknown[]][] = [
  [
    "discriminated unions",
    z.object({ x: z.discriminatedUnion("k", [z.object({ k: z.literal("a") }), z.object({ k: z.literal("b"), n: z.number() })]) }),
    [{ x: { k: "a" } }, { x: { k: "b", n: 1 } }],
    [{ x: { k: "b" } }, { x: { k: "c" } }],
  ],
  ["tuples", z.object({ x: z.tuple([z.string(), z.number()]).rest(z.boolean()) }), [{ x: ["a", 1, true] }], [{ x: ["a"] }, { x: ["a", 1, 2] }]],
  ["records", z.object({ x: z.record(z.string().regex(/^k/), z.number()) }), [{ x: { k1: 1 } }, { x: {} }], [{ x: { a: 1 } }]],
  ["defaults", z.object({ x: z.string().default("d") }), [{}, { x: "y" }], [{ x: 1 }]],
  ["coercions", z.object({ x: z.coerce.number() }), [{ x: "5" }, { x: 5 }, { x: true }], [{ x: "five" }, { x: {} }]],
  ["dates by coercion", z.object({ x: z.coerce.date() }), [{ x: "2020-01-01" }, { x: 0 }], [{ x: "never" }]],
  ["times", z.object({ x: z.iso.time() }), [{ x: "12:00:00" }], [{ x: "noon" }]],
  ["dates and times", z.object({ x: z.iso.datetime() }), [{ x: "2020-01-01T12:00:00Z" }], [{ x: "2020-01-01" }]],
  ["local dates and times", z.object({ x: z.iso.datetime({ local: true }) }), [{ x: "2020-01-01T12:00:00" }], [{ x: "x" }]],
  ["emails", z.object({ x: z.email() }), [{ x: "a@example.org" }], [{ x: "a" }]],
  ["addresses", z.object({ x: z.union([z.ipv4(), z.ipv6()]) }), [{ x: "127.0.0.1" }, { x: "::1" }], [{ x: "x" }]],
  ["other formats", z.object({ x: z.ulid(), y: z.base64url(), w: z.cidrv4(), v: z.nanoid() }), [{ x: "01ARZ3NDEKTSV4RRFFQ69G5FAV", y: "_-8", w: "10.0.0.0/8", v: "V1StGXR8_Z5jdHi6B-myT" }], [{ x: "u" }]],
  ["flags that no pattern has", z.object({ x: z.string().regex(/^abc$/i) }), [{ x: "ABC" }], [{ x: "d" }]],
  ["strict objects", z.strictObject({ a: z.number() }), [{ a: 1 }], [{ a: 1, b: 2 }]],
  ["unions with undefined", z.object({ x: z.string().or(z.null()).optional() }), [{}, { x: null }], [{ x: 1 }]],
  ["intersections", z.object({ x: z.object({ a: z.string() }).and(z.object({ b: z.string() })) }), [{ x: { a: "1", b: "2" } }], [{ x: { a: "1" } }]],
  ["template literals", z.object({ x: z.templateLiteral(["v", z.number()]) }), [{ x: "v1" }], [{ x: "1" }]],
  ["refinements", z.object({ x: z.number().refine((n) => n > 1, "more than one") }), [{ x: 2 }], [{ x: 1 }]],
  ["preprocessing", z.object({ x: z.preprocess((text) => String(text).split(","), z.array(z.string())) }), [{ x: "a,b" }], []],
  ["names with dashes and __proto__", z.object({ "a-b": z.string() }), [{ "a-b": "x" }], [{ a: "x" }]],
];

for (const [name, schema, taken, refused] of ACCEPTED) {
  test(`what Zod takes passes brigd, and what it refuses does not run: ${name}`, async () => {
    let ran = 0;
    const hostFunctions: HostFunctions = {
      tool: {
        f: {
          inputSchema: schema,
          execute: () => {
            ran++;
            return "ran";
          },
        },
      },
    };
    const program = `
      const answers = [];
      for (const input of inputs.all) {
        try { answers.push(await tool.f(input)); } catch (error) { answers.push(error.name + ": " + error.message); }
      }
      return answers;`;
    const result = await evaluate<string[]>(program, { hostFunctions, inputs: { all: [...taken, ...refused] } });
    assert.equal(result.outcome, "succeeded", JSON.stringify(result));
    assert.deepEqual(
      (result.value ?? []).map((answer) => answer === "ran"),
      [...taken.map(() => true), ...refused.map(() => false)],
      JSON.stringify(result.value),
    );
    assert.equal(ran, taken.length);
  });
}

test("a recursive schema is judged at every level", async () => {
  const Node = z.object({
    name: z.string(),
    get kids() {
      return z.array(Node);
    },
  });
  const result = await evaluate("try { await t.f(inputs.bad) } catch (e) { return [await t.f(inputs.good), e.message] }", {
    hostFunctions: { t: { f: { inputSchema: Node, execute: ({ kids }) => kids.length } } },
    inputs: { good: { name: "a", kids: [{ name: "b", kids: [] }] }, bad: { name: "a", kids: [{ name: 1, kids: [] }] } },
  });
  assert.equal(result.outcome, "succeeded", JSON.stringify(result));
  const [count, message] = result.value as [number, string];
  assert.equal(count, 1);
  assert.match(message, /name/);
});

test("the program gets a handler's error with its code and data and without its stack", async () => {
  const program = `
    try { await orders.list({}); } catch (error) {
      return { ...error, name: error.name, message: error.message, stack: String(error.stack) };
    }`;
  const execute = (): never => {
    throw new HostFunctionError("slow down", "rate_limited", { retryAfter: 2 });
  };
  const result = await evaluate<Record<string, unknown>>(program, { hostFunctions: { orders: { list: { execute } } } });
  assert.equal(result.outcome, "succeeded", JSON.stringify(result));
  assert.equal(result.value?.["message"], "slow down");
  assert.match(JSON.stringify(result.value), /rate_limited/);
  assert.match(JSON.stringify(result.value), /retryAfter/);
  assert.doesNotMatch(JSON.stringify(result.value), /integration|node_modules|file:/);
  assert.deepEqual(result.calls.map(({ state, code }) => [state, code]), [["failed", "function_failed"]]);
});

test("host calls run at the same time", async () => {
  let waiting = 0;
  let release = (): void => undefined;
  const all = new Promise<void>((resolve) => (release = resolve));
  const execute = async (): Promise<number> => {
    if (++waiting === 5) release();
    await all;
    return 1;
  };
  const result = await evaluate("return (await Promise.all([1,2,3,4,5].map(() => a.f({})))).length", { hostFunctions: { a: { f: { execute } } } });
  assert.equal(result.value, 5, JSON.stringify(result));
});

test("many evaluations on one connection keep to their own functions", async () => {
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, number) =>
      evaluate<number>("return (await a.me({})) * 2", { hostFunctions: { a: { me: { execute: () => number } } } }),
    ),
  );
  assert.deepEqual(results.map(({ value }) => value), Array.from({ length: 20 }, (_, number) => number * 2));
});

test("a program that fails is a result that says where", async () => {
  const failed = await evaluate("const a = 1;\nthrow new RangeError('no')");
  assert.equal(failed.outcome, "failed");
  assert.deepEqual([failed.error?.code, failed.error?.name, failed.error?.message, failed.error?.line], ["guest_error", "RangeError", "no", 2]);
  const slow = await evaluate("while (true) {}", { timeoutMs: 200 });
  assert.deepEqual([slow.outcome, slow.error?.code], ["timed_out", "timed_out"]);
});

test("console output is kept as asked, and told as it comes", async () => {
  const told: string[] = [];
  const program = "console.log('to out'); console.error('to err'); return 1";
  const result = await evaluate(program, {
    output: { capture: "stderr" },
    onStdout: (text) => told.push(`out ${text}`),
    onStderr: (text) => told.push(`err ${text}`),
  });
  assert.deepEqual([result.stdout, result.stderr], ["", "to err\n"]);
  assert.deepEqual(told.map((text) => text.trim()), ["out to out", "err to err"]);
});

test("a signal ends the program and its calls, and both are told", async () => {
  const controller = new AbortController();
  let aborted: unknown;
  const result = await evaluate("await a.wait({})", {
    signal: controller.signal,
    hostFunctions: {
      a: {
        wait: {
          execute: async (_input, { signal }) => {
            controller.abort();
            await once(signal, "abort");
            aborted = signal.reason;
          },
        },
      },
    },
  });
  assert.deepEqual([result.outcome, result.error?.code], ["cancelled", "cancelled"]);
  assert.match(String(aborted), /AbortError/);
  assert.equal(result.calls.length, 1);
});

test("permissions narrow what a program may call", async () => {
  const hostFunctions = { a: { yes: { execute: () => 1 }, no: { execute: () => 2 } } };
  const result = await evaluate("const x = await a.yes({}); try { await a.no({}) } catch (e) { return [x, e.code] }", {
    hostFunctions,
    permissions: { hostFunction: { default: "deny", rules: [{ mode: "allow", patterns: ["a.yes"] }] } },
  });
  assert.deepEqual(result.value, [1, "permission_denied"], JSON.stringify(result));
});

test("a request that brigd refuses is thrown", async () => {
  await assert.rejects(evaluate("1", { limits: { heapBytes: 1 } }), (fault) => {
    return fault instanceof BrigError && fault.code === "invalid_params" && fault.limit === "heapBytes" && fault.nothingRan;
  });
});

test("check parses and does not run", async () => {
  assert.deepEqual(await check("return await orders.list({})"), { ok: true });
  const wrong = await check("let = ;");
  assert.deepEqual([wrong.ok, wrong.error?.code], [false, "syntax_error"]);
});

test("a client says whom it speaks to", async () => {
  const shared = new Client();
  try {
    const info = await shared.initialize();
    assert.equal(info.server.name, "brigd");
    assert.equal(info.principal.uid, process.getuid?.());
    const other = await connect({ socket: shared.socket });
    assert.equal((await other.evaluate("1 + 1")).value, 2);
    await other.close();
  } finally {
    await shared.close();
  }
});

test("a client whose private brigd is killed starts another", async () => {
  const client = new Client();
  try {
    await client.evaluate("1");
    const pid = brigdOf(client.socket ?? "");
    process.kill(pid, "SIGKILL");
    let result = await client.evaluate("2").catch((fault: unknown) => fault);
    // Whether the loss was noticed before the request was written is a matter of timing.
    if (result instanceof BrigError) {
      assert.ok(["connection_lost", "connect_failed"].includes(result.code), result.code);
      result = await client.evaluate("2");
    }
    assert.equal((result as { value: unknown }).value, 2);
    assert.notEqual(brigdOf(client.socket ?? ""), pid);
  } finally {
    await client.close();
  }
});

/** The process that was started with this socket. */
function brigdOf(socket: string): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(socket)) return Number(pid);
    } catch {
      // It ended meanwhile.
    }
  }
  throw new Error(`no process has ${socket}`);
}

test("a script ends by itself after its last evaluation, and takes its brigd along", async () => {
  const script = `
    import { Client } from "brig";
    const client = new Client();
    const result = await client.evaluate("return 6 * 7");
    console.log(result.value, client.socket);`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], { env: ENV, cwd: HERE, timeout: 120_000 });
  const [value, socket] = stdout.trim().split(" ");
  assert.equal(value, "42");
  await goneWithin(() => existsSync(socket ?? ""), "the socket");
  await goneWithin(() => isRunning(socket ?? ""), "brigd");
});

test("a brigd whose client was killed ends", async () => {
  const script = `
    import { Client } from "brig";
    const client = new Client();
    await client.initialize();
    console.log(client.socket);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { env: ENV, cwd: HERE, stdio: ["ignore", "pipe", "inherit"] });
  const [chunk] = (await once(child.stdout, "data")) as [Buffer];
  const socket = chunk.toString().trim();
  assert.ok(isRunning(socket));
  child.kill("SIGKILL");
  await once(child, "close");
  await goneWithin(() => isRunning(socket), "brigd");
  rmSync(dirname(socket), { recursive: true, force: true });
});

function isRunning(socket: string): boolean {
  try {
    brigdOf(socket);
    return true;
  } catch {
    return false;
  }
}

async function goneWithin(there: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (there()) {
    assert.ok(Date.now() < deadline, `${what} is still there`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("a brigd that can not be started is told with what it said", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brig-test-"));
  try {
    for (const [binary, message] of [
      ["/bin/false", /ended before it was ready \(exit status 1\)/],
      ["/nowhere/brigd", /the option brigd names \/nowhere\/brigd, which is not an executable file/],
    ] as const) {
      const client = new Client({ brigd: binary });
      await assert.rejects(client.evaluate("1"), (fault) => fault instanceof BrigError && fault.code === "start_failed" && message.test(fault.message));
      await client.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a vm keeps its realm between evaluations, also after one that failed", async () => {
  const vm = await createVm({ hostFunctions: { a: { f: { execute: () => 20 } } } });
  try {
    assert.match(vm.id, /^vm_/);
    assert.ok(vm.idleTimeoutMs > 0 && vm.lifetimeMs >= vm.idleTimeoutMs);
    await vm.evaluate("let x = await a.f({})");
    assert.equal((await vm.evaluate("x += 1; x")).value, 21);
    assert.equal((await vm.evaluate("x += 1; throw new Error('no')")).outcome, "failed");
    assert.equal((await evaluate("x * 2", { vm })).value, 44);
    assert.equal((await vm.evaluate("await b.g({})", { hostFunctions: { b: { g: { execute: () => 5 } } } })).value, 5);
    assert.equal((await vm.evaluate("typeof b")).value, "undefined");
  } finally {
    await vm.dispose();
  }
  await assert.rejects(vm.evaluate("x"), (fault) => fault instanceof BrigError && fault.code === "vm_not_found" && fault.nothingRan);
});

test("a vm whose program timed out is lost, and says so", async () => {
  const vm = await createVm({ timeoutMs: 300 });
  const result = await vm.evaluate("for (;;) {}");
  assert.equal(result.outcome, "timed_out");
  assert.ok(result.warnings.some((warning) => warning.code === "vm_lost"), JSON.stringify(result.warnings));
  await assert.rejects(vm.evaluate("1"), (fault) => fault instanceof BrigError && fault.code === "vm_lost" && fault.nothingRan);
});

test("a vm runs one evaluation at a time, and is listed while it is there", async () => {
  const client = new Client();
  try {
    let release: (value: number) => void = () => undefined;
    const held = new Promise<number>((resolve) => (release = resolve));
    let called: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (called = resolve));
    const execute = () => (called(), held);
    const vm = await client.createVm({ hostFunctions: { a: { f: { execute } } } });
    const first = vm.evaluate("await a.f({})");
    await running;
    await assert.rejects(vm.evaluate("1"), (fault) => fault instanceof BrigError && fault.code === "vm_busy" && fault.retryable);
    assert.deepEqual((await client.listVms()).map((info) => [info.vm, info.busy]), [[vm.id, true]]);
    release(7);
    assert.equal((await first).value, 7);
    await vm.dispose();
    assert.deepEqual(await client.listVms(), []);
  } finally {
    await client.close();
  }
});

test("a detached program goes on without its client, and another asks for its answer", async () => {
  const one = await connect();
  try {
    const begun = await one.detach<number>("return inputs.a * 2", { inputs: { a: 21 } });
    const other = await connect({ socket: one.socket });
    try {
      // One that does not end by itself is certain to run still.
      const long = await one.detach("await new Promise((done) => setTimeout(done, 1e6))", { timeoutMs: 600_000 });
      assert.deepEqual([long.state, long.result], ["running", undefined]);
      assert.equal((await other.waitEvaluation(long.evaluation, { timeoutMs: 0 })).state, "running");
      await other.request("cancel", { evaluation: long.evaluation });
      assert.equal((await other.waitEvaluation(long.evaluation)).result?.outcome, "cancelled");
      const ended = await other.waitEvaluation<number>(begun.evaluation);
      assert.equal(ended.state, "ended");
      assert.equal(ended.result?.value, 42);
      assert.ok((ended.endedMs ?? 0) >= ended.startedMs);
      assert.deepEqual(await other.getEvaluation(begun.evaluation), ended);
    } finally {
      await other.close();
    }
    await assert.rejects(one.getEvaluation("ev_none"), (fault: BrigError) => fault.code === "evaluation_not_found");
    await assert.rejects(one.detach("1", { hostFunctions: {} } as object), /detach has no option "hostFunctions"/);
  } finally {
    await one.close();
  }
});
