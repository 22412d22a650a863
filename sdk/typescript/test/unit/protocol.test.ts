/** The client at the other end of a server that speaks the protocol. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { BrigError, Client, connect, HostFunctionError, type HostFunctions, SchemaConversionError } from "brig";
import { z } from "zod";
import { FakeBrigd, type Message, type Peer, succeeded } from "../fake-brigd.js";

/** A client of a fake brigd, and both ends of the first connection. */
async function pair(): Promise<{ brigd: FakeBrigd; client: Client; peer: Promise<Peer>; [Symbol.asyncDispose](): Promise<void> }> {
  const brigd = await new FakeBrigd().listen();
  const client = new Client({ socket: brigd.socket });
  return {
    brigd,
    client,
    peer: brigd.accept(),
    async [Symbol.asyncDispose]() {
      await client.close();
      await brigd[Symbol.asyncDispose]();
    },
  };
}

async function withPair(run: (parts: { brigd: FakeBrigd; client: Client; peer: Promise<Peer> }) => Promise<void>): Promise<void> {
  const parts = await pair();
  try {
    await run(parts);
  } finally {
    await parts[Symbol.asyncDispose]();
  }
}

/** One evaluation with this function; what the server got as the answer to one call of it. */
async function oneCall(functions: HostFunctions, name: string, input: unknown): Promise<Message> {
  let got: Message = {};
  await withPair(async ({ client, peer }) => {
    const running = client.evaluate("1", { hostFunctions: functions });
    const server = await peer;
    const request = await server.expect("evaluate");
    server.call("c1", "ev_1", name, input);
    got = await server.next();
    server.answer(request.id, succeeded(1));
    await running;
  });
  return got;
}

test("connect says who it is and fails when nobody answers", async () => {
  await withPair(async ({ brigd, peer }) => {
    const connecting = connect({ socket: brigd.socket });
    const server = await peer;
    const request = await server.expect("initialize");
    assert.equal(request.params.protocolVersion, "1");
    assert.equal(request.params.client.name, "brig-typescript");
    server.answer(request.id, { protocolVersion: "1" });
    await (await connecting).close();
  });
  await assert.rejects(connect({ socket: "/nowhere/brig.sock" }), (fault) => {
    assert.ok(fault instanceof BrigError);
    assert.deepEqual([fault.code, fault.retryable, fault.nothingRan], ["connect_failed", true, true]);
    assert.match(fault.message, /\/nowhere\/brig\.sock.*ENOENT/);
    return true;
  });
});

test("options are sent as the protocol spells them, and functions are kept here", async () => {
  await withPair(async ({ client, peer }) => {
    const running = client.evaluate<number>("return 1", {
      form: "body",
      language: "javascript",
      inputs: { a: [1, "é"], gone: undefined },
      hostFunctions: {
        orders: {
          list: {
            inputSchema: z.object({ customer: z.string() }).describe("List orders."),
            outputSchema: z.array(z.string()),
            execute: () => [],
            examples: [{ description: "one", input: { customer: "c" } }],
            timeout: 100,
            effect: "read",
          },
        },
      },
      permissions: { hostFunction: { default: "deny", rules: [{ mode: "allow", patterns: ["orders.*"] }] } },
      timeoutMs: 5_000,
      limits: { cpuMs: 10 },
      output: { capture: "stderr" },
      timeZone: "Europe/Prague",
      vm: "vm_1",
      idempotencyKey: "k",
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    const server = await peer;
    const request = await server.expect("evaluate");
    assert.deepEqual(request.params, {
      source: "return 1",
      form: "body",
      language: "javascript",
      inputs: { a: [1, "é"] },
      hostFunctions: {
        orders: {
          list: {
            description: "List orders.",
            inputSchema: { type: "object", properties: { customer: { type: "string" } }, required: ["customer"] },
            outputSchema: { type: "array", items: { type: "string" } },
            examples: [{ description: "one", input: { customer: "c" } }],
            timeoutMs: 100,
            effect: "read",
          },
        },
      },
      permissions: { hostFunction: { default: "deny", rules: [{ mode: "allow", patterns: ["orders.*"] }] } },
      timeoutMs: 5_000,
      limits: { cpuMs: 10 },
      output: { capture: "stderr" },
      vm: "vm_1",
      timeZone: "Europe/Prague",
      idempotencyKey: "k",
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    server.answer(request.id, succeeded(1));
    assert.equal((await running).value, 1);
  });
});

test("a handler gets the input as its schema parses it, and what it is told of the call", async () => {
  let seen: unknown;
  const schema = z.object({ n: z.coerce.number(), limit: z.number().default(5), name: z.string().trim() });
  const got = await oneCall(
    {
      a: {
        f: {
          inputSchema: schema,
          execute: (input, { signal, deadline, ...call }) => {
            seen = { input, call, aborted: signal.aborted, soon: deadline.getTime() - Date.now() <= 5_000 };
            return { ok: true, left: undefined };
          },
        },
      },
    },
    "a.f",
    { n: "42", name: " x ", more: 1 },
  );
  assert.deepEqual(seen, {
    input: { n: 42, limit: 5, name: "x" },
    call: { evaluation: "ev_1", call: 1, idempotencyKey: "ev_1:1" },
    aborted: false,
    soon: true,
  });
  assert.deepEqual(got, { jsonrpc: "2.0", id: "c1", result: { ok: true } });
});

test("what only the schema's library can judge is refused before the handler runs", async () => {
  let ran = false;
  const schema = z.object({ a: z.object({ n: z.number().refine((n) => n % 2 === 0, "must be even") }) });
  const got = await oneCall({ a: { f: { inputSchema: schema, execute: () => (ran = true) } } }, "a.f", { a: { n: 3 } });
  assert.equal(ran, false);
  assert.deepEqual(got.error, {
    code: -32000,
    message: "$.a.n: must be even",
    data: { name: "InvalidInput", code: "invalid_input", data: { issues: [{ path: "$.a.n", message: "must be even" }] } },
  });
});

test("an output schema drops what it does not name, and names only the place of what it refuses", async () => {
  const functions = (value: unknown): HostFunctions => ({
    a: { f: { outputSchema: z.object({ id: z.string(), when: z.date() }), execute: () => value } },
  });
  const kept = await oneCall(functions({ id: "o_1", when: new Date(0), password: "hunter2" }), "a.f", {});
  assert.deepEqual(kept.result, { id: "o_1", when: "1970-01-01T00:00:00.000Z" });
  const refused = await oneCall(functions({ id: "hunter2" }), "a.f", {});
  assert.match(refused.error.message, /does not match its outputSchema at \$\.when/);
  assert.doesNotMatch(JSON.stringify(refused), /hunter2/);
});

test("of an error cross name, message, code and data, and never the stack", async () => {
  class RateLimitError extends Error {
    override readonly name = "RateLimitError";
    readonly code = "rate_limited";
    readonly data = { retryAfter: 2 };
  }
  const cases: [unknown, object][] = [
    [new RateLimitError("slow down"), { message: "slow down", data: { name: "RateLimitError", code: "rate_limited", data: { retryAfter: 2 } } }],
    [new HostFunctionError("no", "denied", [1]), { message: "no", data: { code: "denied", data: [1] } }],
    [Object.assign(new Error("x"), { code: 404, data: { big: 1n } }), { message: "x", data: { name: "Error", code: "404" } }],
    ["just text", { message: "just text", data: {} }],
    [undefined, { message: "the function threw a value that is no Error", data: {} }],
    [{}, { message: "the function failed and gave no reason", data: {} }],
    [
      new Proxy({}, { get: () => { throw new Error("hostile"); } }),
      { message: "the function failed and gave no reason", data: {} },
    ],
  ];
  for (const [thrown, crossing] of cases) {
    for (const execute of [() => { throw thrown; }, () => Promise.reject(thrown)]) {
      const got = await oneCall({ a: { f: { execute } } }, "a.f", {});
      assert.deepEqual(got.error, { code: -32000, ...crossing });
    }
  }
});

test("an output that JSON has no form for is an error with its path", async () => {
  const cyclic: { me?: unknown } = {};
  cyclic.me = cyclic;
  const cases: [unknown, RegExp][] = [
    [{ rows: [{ n: 1n }] }, /\$\.rows\[0\]\.n is a bigint/],
    [{ a: Number.NaN }, /\$\.a is NaN/],
    [{ a: new Map() }, /\$\.a is a Map/],
    [{ a: new Set() }, /\$\.a is a Set/],
    [{ a: Promise.resolve() }, /\$\.a is a promise that was not awaited/],
    [{ a: Buffer.from("x") }, /\$\.a is bytes/],
    [{ a: new Date(Number.NaN) }, /\$\.a is an invalid Date/],
    [{ "b c": () => 1 }, /\$\["b c"\] is a function/],
    [cyclic, /\$\.me is a reference back/],
    [Array.from({ length: 600 }).reduce((inner) => [inner], 1), /nested more than 512 levels/],
  ];
  for (const [value, message] of cases) {
    const got = await oneCall({ a: { f: { execute: () => value } } }, "a.f", {});
    assert.match(got.error.message, message);
    assert.equal(got.error.data.code, "invalid_output");
  }
  const nothing = await oneCall({ a: { f: { execute: () => undefined } } }, "a.f", {});
  assert.equal(nothing.result, null);
  const proto = await oneCall({ a: { f: { execute: () => JSON.parse('{"__proto__":1}') as unknown } } }, "a.f", {});
  assert.deepEqual(Object.keys(proto.result as object), ["__proto__"]);
});

test("an answer that is larger than a line may be becomes a failure", async () => {
  const got = await oneCall({ a: { f: { execute: () => "x".repeat(17 * 1024 * 1024) } } }, "a.f", {});
  assert.equal(got.error.data.code, "output_too_large");
});

test("inherited and unknown names are no host functions", async () => {
  for (const name of ["a.toString", "a.constructor", "constructor.name", "b.f", "a.__proto__"]) {
    const got = await oneCall({ a: { f: { execute: () => 1 } } }, name, {});
    assert.equal(got.error.data.code, "unknown_function", name);
  }
});

test("many evaluations share one connection, and each call reaches the handlers of its own", async () => {
  await withPair(async ({ client, peer }) => {
    const evaluations = ["one", "two", "three"].map((word) =>
      client.evaluate<string>(word, { hostFunctions: { a: { say: { execute: () => word } } } }),
    );
    const server = await peer;
    const requests = [await server.expect("evaluate"), await server.expect("evaluate"), await server.expect("evaluate")];
    // Only one may stay unannounced: whose it is that has no name is then known.
    assert.deepEqual(requests.map((request) => request.params.announce), [undefined, true, true]);
    for (const index of [2, 1]) {
      server.send({ method: "evaluation.started", params: { id: requests[index]?.id, evaluation: `ev_${index}` } });
    }
    for (const index of [2, 0, 1]) server.call(`c${index}`, `ev_${index}`, "a.say", {});
    const got = [await server.next(), await server.next(), await server.next()];
    assert.deepEqual(
      got.map(({ id, result }) => [id, result]).sort(),
      [["c0", "one"], ["c1", "two"], ["c2", "three"]],
    );
    for (const index of [1, 2, 0]) server.answer(requests[index]?.id, succeeded(index));
    assert.deepEqual((await Promise.all(evaluations)).map(({ value }) => value), [0, 1, 2]);
  });
});

test("a call for an evaluation of nobody here is refused", async () => {
  await withPair(async ({ client, peer }) => {
    const running = client.evaluate("1");
    const server = await peer;
    const request = await server.expect("evaluate");
    server.call("c1", "ev_9", "a.f", {});
    assert.equal((await server.next()).error.data.code, "cancelled");
    server.send({ id: "q1", method: "host.delete", params: {} });
    assert.equal((await server.next()).error.code, -32601);
    server.answer(request.id, succeeded(1));
    await running;
  });
});

test("a signal cancels the evaluation, whose result says what was done until then", async () => {
  await withPair(async ({ client, peer }) => {
    const controller = new AbortController();
    const running = client.evaluate("while (true) {}", { signal: controller.signal });
    const server = await peer;
    const request = await server.expect("evaluate");
    controller.abort();
    const cancel = await server.expect("cancel");
    assert.deepEqual([cancel.id, cancel.params], [undefined, { id: request.id }]);
    const error = { code: "cancelled", name: "Cancelled", message: "m", retryable: true };
    server.answer(request.id, { ...succeeded(1), value: undefined, outcome: "cancelled", error });
    const result = await running;
    assert.equal(result.outcome, "cancelled");
  });
});

test("a signal that is aborted already gives the same outcome and sends nothing", async () => {
  await withPair(async ({ client, peer }) => {
    const result = await client.evaluate("1", { signal: AbortSignal.abort() });
    assert.deepEqual([result.outcome, result.error?.code, result.evaluation], ["cancelled", "cancelled", ""]);
    const asking = client.check("1");
    const server = await peer;
    server.answer((await server.expect("check")).id, { ok: true });
    assert.deepEqual(await asking, { ok: true });
  });
});

test("a cancelled call aborts its handler's signal and is not answered", async () => {
  await withPair(async ({ client, peer }) => {
    let reason: unknown;
    let ran = false;
    const started = deferred();
    const running = client.evaluate("1", {
      hostFunctions: {
        a: {
          never: { inputSchema: z.object({}), execute: () => (ran = true) },
          wait: {
            execute: async (_input, { signal }) => {
              started.resolve();
              await once(signal, "abort");
              reason = signal.reason;
              return "too late";
            },
          },
          now: { execute: () => "now" },
        },
      },
    });
    const server = await peer;
    const request = await server.expect("evaluate");
    server.call("c1", "ev_1", "a.wait", {}, 1);
    await started.promise;
    server.send({ method: "host.cancel", params: { id: "c1", evaluation: "ev_1", call: 1, reason: "function_timed_out" } });
    // One that is cancelled before its handler had its turn does not run.
    const both = [
      { id: "c3", method: "host.call", params: { evaluation: "ev_1", call: 3, function: "a.never", input: {}, deadlineMs: 1, idempotencyKey: "k" } },
      { method: "host.cancel", params: { id: "c3", evaluation: "ev_1", call: 3, reason: "cancelled" } },
    ];
    server.sendRaw(both.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""));
    server.call("c2", "ev_1", "a.now", {}, 2);
    assert.deepEqual((await server.next()).id, "c2");
    assert.equal(ran, false);
    assert.match(String(reason), /AbortError: the call is over: function_timed_out/);
    server.answer(request.id, succeeded(1));
    await running;
  });
});

test("handlers that still run when their evaluation ends are told", async () => {
  await withPair(async ({ client, peer }) => {
    const aborted = deferred();
    const started = deferred();
    const running = client.evaluate("1", {
      hostFunctions: {
        a: {
          wait: {
            execute: (_input, { signal }) => {
              signal.addEventListener("abort", () => aborted.resolve());
              started.resolve();
              return new Promise(() => undefined);
            },
          },
        },
      },
    });
    const server = await peer;
    const request = await server.expect("evaluate");
    server.call("c1", "ev_1", "a.wait", {});
    await started.promise;
    server.answer(request.id, succeeded(1));
    await running;
    await aborted.promise;
  });
});

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

test("output and warnings are told while the program runs", async () => {
  await withPair(async ({ client, peer }) => {
    const told: unknown[] = [];
    const running = client.evaluate("1", {
      onStdout: (text) => told.push(["out", text]),
      onStderr: (text) => told.push(["err", text]),
      onWarning: (warning) => told.push(["warning", warning.code]),
      onApproval: (note) => told.push([note.approval, note.function]),
    });
    const server = await peer;
    const request = await server.expect("evaluate");
    assert.deepEqual(request.params.output, { stream: true });
    server.send({ method: "evaluation.output", params: { evaluation: "ev_1", stream: "stdout", text: "a\n" } });
    server.send({ method: "evaluation.output", params: { evaluation: "ev_1", stream: "stderr", text: "b\n" } });
    server.send({ method: "evaluation.warning", params: { evaluation: "ev_1", warning: { code: "limit_near", message: "m" } } });
    const note = { evaluation: "ev_1", call: 1, function: "a.b", approval: "ap_1", expiresInMs: 5 };
    server.send({ method: "evaluation.approval", params: note });
    server.send({ method: "evaluation.dream", params: { evaluation: "ev_1" } });
    server.answer(request.id, succeeded(1));
    await running;
    assert.deepEqual(told, [["out", "a\n"], ["err", "b\n"], ["warning", "limit_near"], ["ap_1", "a.b"]]);
  });
});

test("a refusal is thrown with all that brigd says, and a failed program is not", async () => {
  await withPair(async ({ client, peer }) => {
    const refused = client.evaluate("1");
    const server = await peer;
    const more = { retryable: true, retryAfterMs: 50, hint: "wait", limit: "x", setting: "clients.x" };
    server.refuse((await server.expect("evaluate")).id, "overloaded", more);
    await assert.rejects(refused, (fault) => {
      assert.ok(fault instanceof BrigError);
      const { code, retryable, retryAfterMs, hint, limit, setting, nothingRan } = fault;
      assert.deepEqual({ code, nothingRan, retryable, retryAfterMs, hint, limit, setting }, { code: "overloaded", nothingRan: true, ...more });
      return true;
    });
    const failed = client.evaluate("throw 1");
    const error = { code: "guest_error", name: "Error", message: "m", retryable: false, line: 1 };
    server.answer((await server.expect("evaluate")).id, { ...succeeded(0), value: undefined, outcome: "failed", error });
    const result = await failed;
    assert.equal(result.outcome === "failed" && result.error.line, 1);
  });
});

test("a lost connection is told as such, and the next request makes a new one", async () => {
  await withPair(async ({ brigd, client, peer }) => {
    let signal: AbortSignal | undefined;
    const started = deferred();
    const execute = (_input: unknown, call: { signal: AbortSignal }): Promise<never> => {
      signal = call.signal;
      started.resolve();
      return new Promise(() => undefined);
    };
    const lost = client.evaluate("1", { hostFunctions: { a: { f: { execute } } } });
    const server = await peer;
    await server.expect("evaluate");
    server.call("c1", "ev_1", "a.f", {});
    await started.promise;
    server.drop();
    await assert.rejects(lost, (fault) => fault instanceof BrigError && fault.code === "connection_lost" && !fault.nothingRan);
    assert.equal(signal?.aborted, true);
    const again = client.evaluate("2");
    const second = await brigd.accept();
    second.answer((await second.expect("evaluate")).id, succeeded(2));
    assert.equal((await again).value, 2);
  });
});

test("a brigd that restarts is waited for", async () => {
  await withPair(async ({ brigd, client, peer }) => {
    const first = client.check("1");
    const server = await peer;
    server.answer((await server.expect("check")).id, { ok: true });
    await first;
    const lost = assert.rejects(client.check("lost"));
    await server.expect("check");
    await brigd.stop();
    await lost;
    const again = client.check("2");
    await new Promise((resolve) => setImmediate(resolve));
    await brigd.listen();
    const second = await brigd.accept();
    second.answer((await second.expect("check")).id, { ok: true });
    assert.deepEqual(await again, { ok: true });
  });
});

test("what is not the protocol ends the connection and says so", async () => {
  for (const line of ["not json\n", "[1\n", '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad line","data":{"code":"parse_error"}}}\n']) {
    await withPair(async ({ client, peer }) => {
      const running = client.evaluate("1");
      const server = await peer;
      await server.expect("evaluate");
      server.sendRaw(line);
      await assert.rejects(running, (fault) => fault instanceof BrigError && fault.code === "protocol_error" && !fault.nothingRan);
    });
  }
});

test("a client that is sent away hears why", async () => {
  await withPair(async ({ client, peer }) => {
    const running = client.evaluate("1");
    const server = await peer;
    await server.expect("evaluate");
    server.send({ id: null, error: { code: -32000, message: "too many clients", data: { code: "overloaded", retryable: true } } });
    await assert.rejects(running, (fault) => fault instanceof BrigError && fault.code === "overloaded" && fault.retryable);
  });
});

test("lines come in any pieces, with several in one and with text beyond ASCII", async () => {
  await withPair(async ({ client, peer }) => {
    const running = [client.evaluate("1"), client.evaluate("2")];
    const server = await peer;
    const ids = [(await server.expect("evaluate")).id, (await server.expect("evaluate")).id];
    const lines = ids.map((id) => `${JSON.stringify({ jsonrpc: "2.0", id, result: succeeded("žluťoučký 🐴") })}\n`).join("\n");
    for (const byte of Buffer.from(lines)) server.socket.write(Buffer.of(byte));
    assert.deepEqual((await Promise.all(running)).map(({ value }) => value), ["žluťoučký 🐴", "žluťoučký 🐴"]);
  });
});

test("a line without an end is not kept beyond its bound", { timeout: 120_000 }, async () => {
  await withPair(async ({ client, peer }) => {
    const running = client.evaluate("1");
    const server = await peer;
    await server.expect("evaluate");
    const chunk = Buffer.alloc(16 * 1024 * 1024, "x");
    const flood = (): void => {
      while (!server.socket.destroyed && server.socket.write(chunk));
    };
    server.socket.on("drain", flood);
    flood();
    await assert.rejects(running, /a line has more than 268435456 bytes/);
  });
});

test("a request that is larger than a line may be is refused here", async () => {
  await withPair(async ({ client }) => {
    await assert.rejects(client.evaluate("1", { inputs: { text: "x".repeat(17 * 1024 * 1024) } }), (fault) => {
      return fault instanceof BrigError && fault.code === "line_too_long" && fault.nothingRan;
    });
  });
});

test("a server that stops reading holds back the requests, and cancels come after what they cancel", async () => {
  await withPair(async ({ client, peer }) => {
    const server = await Promise.all([peer, client.check("").catch(() => undefined), peer.then((p) => p.expect("check").then(({ id }) => p.answer(id, { ok: true })))]).then(([p]) => p);
    server.socket.pause();
    const controller = new AbortController();
    const text = "x".repeat(1024 * 1024);
    // Node warns of more than ten listeners of one kind.
    const warned: Error[] = [];
    const warns = (warning: Error): number => warned.push(warning);
    process.on("warning", warns);
    const running = Array.from({ length: 16 }, (_, n) => client.evaluate(`${n}`, { inputs: { text }, signal: controller.signal }));
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    server.socket.resume();
    const seen: Message[] = [];
    while (seen.length < 32) seen.push(await server.next());
    for (const { id } of seen.filter(({ method }) => method === "evaluate")) {
      const requested = seen.findIndex((message) => message.id === id);
      const cancelled = seen.findIndex((message) => message.method === "cancel" && message.params.id === id);
      assert.ok(requested < cancelled, `${id}`);
      server.answer(id, succeeded(id));
    }
    await Promise.all(running);
    process.off("warning", warns);
    assert.deepEqual(warned, []);
  });
});

test("what can not be sent is refused before anything is", async () => {
  const client = new Client({ socket: "/nowhere/brig.sock" });
  const functions = (definition: object): HostFunctions => ({ orders: { list: definition } }) as HostFunctions;
  const execute = (): number => 1;
  const cases: [() => Promise<unknown>, RegExp][] = [
    [() => client.evaluate(5 as never), /source must be a string; it is number/],
    [() => client.evaluate("1", { timeout: 5 } as never), /evaluate has no option "timeout"/],
    [() => client.check("1", { inputs: {} } as never), /check has no option "inputs"/],
    [() => client.createVm({ form: "body" } as never), /createVm has no option "form"/],
    [() => client.evaluate("1", { inputs: { a: [new Map()] } }), /evaluate: inputs\.a\[0\] is a Map/],
    [() => client.evaluate("1", { hostFunctions: 5 as never }), /hostFunctions must be an object/],
    [() => client.evaluate("1", { hostFunctions: { orders: () => 1 } as never }), /hostFunctions\.orders must be an object/],
    [() => client.detach("1", { onApproval: () => 1 } as never), /detach has no option "onApproval"/],
    [() => client.evaluate("1", { hostFunctions: functions({}) }), /orders\.list must have a function "execute"/],
    [() => client.evaluate("1", { hostFunctions: functions({ execute, inputschema: {} }) }), /orders\.list has an unknown member "inputschema"/],
    [
      () => client.evaluate("1", { hostFunctions: functions({ execute, inputSchema: z.object({ when: z.date() }) }) }),
      /orders\.list inputSchema: \$\.when \(date\): JSON has no date/,
    ],
    [() => client.evaluate("1", { hostFunctions: functions({ execute, inputSchema: z.string() }) }), /takes one object; use z\.object\(\)/],
  ];
  for (const [attempt, message] of cases) await assert.rejects(attempt, message);
  await assert.rejects(
    () => client.evaluate("1", { hostFunctions: functions({ execute, outputSchema: z.map(z.string(), z.string()) }) }),
    (fault) => fault instanceof SchemaConversionError && fault.schema === "orders.list outputSchema",
  );
});

test("a vm keeps its handlers and defaults, and is disposed of by name", async () => {
  await withPair(async ({ client, peer }) => {
    const making = client.createVm({
      hostFunctions: { kept: { f: { execute: () => "kept" } } },
      limits: { cpuMs: 5 },
      timeoutMs: 100,
      output: { capture: "none" },
    });
    const server = await peer;
    const made = await server.expect("vm.create");
    assert.deepEqual(made.params, { hostFunctions: { kept: { f: {} } }, limits: { cpuMs: 5 } });
    server.answer(made.id, { vm: "vm_1", idleTimeoutMs: 1000, lifetimeMs: 2000 });
    const vm = await making;
    assert.deepEqual([vm.id, vm.idleTimeoutMs, vm.lifetimeMs], ["vm_1", 1000, 2000]);

    const running = vm.evaluate<number>("1", { hostFunctions: { own: { f: { execute: () => "own" } } }, timeoutMs: 50 });
    const request = await server.expect("evaluate");
    assert.deepEqual(request.params, {
      source: "1",
      hostFunctions: { own: { f: {} } },
      timeoutMs: 50,
      output: { capture: "none" },
      vm: "vm_1",
      announce: true,
    });
    server.send({ method: "evaluation.started", params: { id: request.id, evaluation: "ev_1" } });
    for (const [name, of] of [["kept", "vm_1"], ["own"]] as const) {
      server.call(`c_${name}`, "ev_1", `${name}.f`, {}, 1, of);
      assert.equal((await server.next()).result, name);
    }
    server.answer(request.id, succeeded(1));
    await running;

    const disposing = vm.dispose();
    const disposed = await server.expect("vm.dispose");
    assert.deepEqual(disposed.params, { vm: "vm_1" });
    server.answer(disposed.id, {});
    await disposing;
  });
});

test("a call of somebody else's evaluation in a vm made here is not taken for one of ours", async () => {
  await withPair(async ({ client, peer }) => {
    const making = client.createVm({ hostFunctions: { a: { f: { execute: () => "vm" } } } });
    const server = await peer;
    server.answer((await server.expect("vm.create")).id, { vm: "vm_1", idleTimeoutMs: 1000, lifetimeMs: 2000 });
    const vm = await making;
    const running = client.evaluate("1", { hostFunctions: { a: { f: { execute: () => "own" } } } });
    const request = await server.expect("evaluate");
    assert.equal(request.params.announce, true);
    server.call("c1", "ev_other", "a.f", {}, 1, "vm_1");
    assert.equal((await server.next()).result, "vm");
    server.call("c2", "ev_other", "a.g", {}, 2, "vm_1");
    assert.equal((await server.next()).error.data.code, "unknown_function");
    server.call("c5", "ev_other", "a.f", {}, 3, "vm_2");
    assert.equal((await server.next()).error.data.code, "cancelled");
    server.send({ method: "evaluation.started", params: { id: request.id, evaluation: "ev_own" } });
    server.call("c3", "ev_own", "a.f", {});
    assert.equal((await server.next()).result, "own");
    server.answer(request.id, succeeded(1));
    await running;
    const disposing = vm.dispose();
    server.answer((await server.expect("vm.dispose")).id, {});
    await disposing;
    server.call("c4", "ev_other", "a.f", {}, 3, "vm_1");
    assert.equal((await server.next()).error.data.code, "cancelled");
  });
});

test("a vm's functions answer from the line that makes it, and beside an evaluation that began before", async () => {
  await withPair(async ({ client, peer }) => {
    const running = client.evaluate("1", { hostFunctions: { a: { f: { execute: () => "own" } } } });
    const server = await peer;
    const request = await server.expect("evaluate");
    assert.equal(request.params.announce, undefined);
    const making = client.createVm({ hostFunctions: { a: { f: { execute: () => "vm" } } } });
    const made = await server.expect("vm.create");
    server.answer(made.id, { vm: "vm_1", idleTimeoutMs: 1000, lifetimeMs: 2000 });
    server.call("c1", "ev_other", "a.f", {}, 1, "vm_1");
    server.call("c2", "ev_own", "a.f", {});
    assert.deepEqual([(await server.next()).result, (await server.next()).result], ["vm", "own"]);
    server.answer(request.id, succeeded(1));
    await Promise.all([running, making]);
  });
});

test("an approval of a call without a program is not taken for one of an evaluation", async () => {
  await withPair(async ({ client, peer }) => {
    const told: unknown[] = [];
    const running = client.evaluate("1", { hostFunctions: { a: { f: { execute: () => "own" } } }, onApproval: (note) => told.push(note) });
    const server = await peer;
    const request = await server.expect("evaluate");
    const calling = client.request("functions.call", { function: "billing.charge" });
    const called = await server.expect("functions.call");
    const note = { evaluation: "fc_1", call: 1, function: "billing.charge", approval: "ap_1", expiresInMs: 5000 };
    server.send({ method: "evaluation.approval", params: note });
    server.call("c1", "ev_own", "a.f", {});
    assert.equal((await server.next()).result, "own");
    server.answer(called.id, { ok: true });
    server.answer(request.id, succeeded(1));
    assert.deepEqual([(await running).value, await calling, told], [1, { ok: true }, []]);
  });
});

test("a call without a program tells when it waits for a person, and is cancelled by its signal", async () => {
  await withPair(async ({ client, peer }) => {
    const told: string[] = [];
    const stop = new AbortController();
    const listen = (who: string) => ({ onApproval: ({ approval }: { approval: string }) => void told.push(`${who} ${approval}`) });
    const calling = client.call("billing.charge", { amount: 5 }, { timeoutMs: 7, idempotencyKey: "k", signal: stop.signal, ...listen("charge") });
    const server = await peer;
    const charge = await server.expect("functions.call");
    assert.deepEqual(charge.params, { function: "billing.charge", input: { amount: 5 }, timeoutMs: 7, idempotencyKey: "k" });
    const other = client.call("billing.list", undefined, listen("list"));
    const list = await server.expect("functions.call");
    assert.deepEqual(list.params, { function: "billing.list" });
    const note = { evaluation: "fc_1", call: 1, function: "billing.charge", approval: "ap_1", expiresInMs: 5000 };
    server.send({ method: "evaluation.approval", params: note });
    const call = { call: 1, function: "billing.list", state: "completed", durationMs: 1, inputBytes: 2, outputBytes: 2 };
    server.answer(list.id, { call, value: [] });
    assert.deepEqual(await other, { call, value: [] });
    assert.deepEqual(told, ["charge ap_1"]);
    stop.abort();
    assert.deepEqual((await server.expect("cancel")).params, { id: charge.id });
    server.answer(charge.id, { call: { ...call, state: "refused", code: "cancelled" }, error: { code: "cancelled", message: "m" } });
    assert.equal((await calling).error?.code, "cancelled");
    await assert.rejects(client.call("billing.list", {}, { signal: stop.signal }), (fault) => fault instanceof BrigError && fault.nothingRan);
    await assert.rejects(client.call("billing.list", {}, { onStdout: () => 1 } as never), /call has no option "onStdout"/);
  });
});

test("a closed client refuses, and what was in flight is rejected", async () => {
  await withPair(async ({ client, peer }) => {
    const running = client.evaluate("1");
    await (await peer).expect("evaluate");
    await client.close();
    await assert.rejects(running, (fault) => fault instanceof BrigError && fault.code === "closed" && !fault.nothingRan);
    await assert.rejects(client.evaluate("1"), (fault) => fault instanceof BrigError && fault.code === "closed" && fault.nothingRan);
  });
});
