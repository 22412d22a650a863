// `brig mcp` through the official client and the protocol's conformance suite.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { promisify } from "node:util";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { BRIG, ENV, FOLDER, FUNCTIONS, HERE, TOKEN, WAITS, ended, listen, listening, manyFunctions, run, stdio, until } from "./harness.mjs";

test("one tool declares every function and runs programs over them", async () => {
  const client = await stdio();
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["execute"]);
  assert.match(tools[0].description, /declare const orders: \{[^]*List a customer's orders\.[^]*@example All of one customer: await orders\.list/);
  const result = await run(client, "console.log('hello'); (await orders.list({ customer: inputs.c })).reduce((sum, one) => sum + one.amount, 0)", {}, { c: "c1" });
  assert.equal(result.isError, false);
  assert.equal(result.structuredContent.value, 42);
  assert.deepEqual(result.structuredContent.calls.map((call) => [call.function, call.state]), [["orders.list", "completed"]]);
  assert.match(result.content[0].text, /^42\n\nconsole: hello$/);
  await client.close();
});

test("a failed program is told so that a model can repair it", async () => {
  const client = await stdio();
  const result = await run(client, "const all = await orders.list({ customer: 'c' });\nawait orders.refund({});\nreturn all");
  assert.equal(result.isError, true);
  const text = result.content[0].text;
  for (const part of ["guest_error", "line 2", "await orders.refund({});", "no money left", "not undone", "1. orders.list completed", "2. orders.refund failed (function_failed)"]) {
    assert.ok(text.includes(part), `${part} is not in\n${text}`);
  }
  const misspelt = await run(client, "await orders.lst({})");
  assert.match(misspelt.content[0].text, /did you mean orders\.list\?/);
  const input = await run(client, "await orders.list({ customer: 5 })");
  assert.match(input.content[0].text, /customer/);
  assert.equal(input.structuredContent.error.code, "guest_error");
  await client.close();
});

test("arguments that are wrong are told with what is right", async () => {
  const client = await stdio();
  for (const [args, expected] of [[{}, /no "code"/], [{ code: 5 }, /must be a string/], [{ code: "1", inputs: [] }, /must be an object/], [{ code: "1", imputs: {} }, /imputs/]]) {
    const result = await client.callTool({ name: "execute", arguments: args });
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, expected);
  }
  await assert.rejects(client.callTool({ name: "run", arguments: {} }), /there are execute/);
  await client.close();
});

/** The progress of a program that ends with `orders.until`, of so many notes. */
async function progressOf(client, code, notes) {
  rmSync(join(FOLDER, "go"), { force: true });
  const seen = [];
  // The client drops what arrives together with the answer, so the answer waits for it.
  const onprogress = (note) => {
    seen.push(note);
    if (seen.length === notes) writeFileSync(join(FOLDER, "go"), "");
  };
  await run(client, code, { onprogress });
  return seen;
}

test("progress tells console lines and calls as they come", async () => {
  const client = await stdio();
  const seen = await progressOf(client, "console.log('first'); await orders.list({ customer: 'c' }); console.log('second'); await orders.until({})", 4);
  assert.deepEqual(seen.map((note) => note.message), ["first", "calls orders.list", "second", "calls orders.until"]);
  assert.deepEqual(seen.map((note) => note.progress), [1, 2, 3, 4]);
  await client.close();
});

test("cancelling the request cancels the evaluation and its calls", async () => {
  const client = await stdio();
  const stop = new AbortController();
  const running = run(client, "await orders.wait({})", { signal: stop.signal });
  running.catch(() => undefined);
  await until("the call", () => existsSync(join(FOLDER, "started")));
  stop.abort("enough");
  await assert.rejects(running);
  // The command belongs to a call that is over: its process is gone when the next program runs.
  await until("the end of the command", async () => {
    const { stdout } = await promisify(execFile)("sh", ["-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"], { maxBuffer: 1 << 26 });
    return !stdout.includes(`sleep ${WAITS} `);
  });
  assert.equal((await run(client, "1 + 1")).structuredContent.value, 2);
  await client.close();
});

test("a large catalogue is named, searched and described", async () => {
  const client = await stdio(["--private", "--functions", manyFunctions(500)]);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["execute", "search", "describe"]);
  assert.ok(tools[0].description.length <= 24 * 1024, `${tools[0].description.length}`);
  const found = await client.callTool({ name: "search", arguments: { query: "close an invoice update" } });
  assert.match(found.content[0].text.split("\n")[0], /^service\d\.updateInvoice: /);
  const described = await client.callTool({ name: "describe", arguments: { functions: ["service3.updateInvoice"] } });
  assert.match(described.content[0].text, /declare const service3: \{[^]*updateInvoice\(input: \{[^]*id: string;/);
  assert.ok(!described.content[0].text.includes("service2"), described.content[0].text);
  const missing = await client.callTool({ name: "describe", arguments: { functions: ["service3.updateInvoices"] } });
  assert.equal(missing.isError, true);
  assert.match(missing.content[0].text, /near it are[^]*updateInvoice/);
  assert.equal((await run(client, "(await service9.searchUser({ id: 'a' })).id")).structuredContent.value, "x");
  await client.close();
});

test("patterns narrow what is offered and what can be called", async () => {
  const client = await stdio(["--private", "--functions", FUNCTIONS, "--allow", "orders.*", "--deny", "orders.refund"]);
  const [tool] = (await client.listTools()).tools;
  assert.ok(tool.description.includes("  list(") && !tool.description.includes("refund"), tool.description);
  const result = await run(client, "await orders.refund({})");
  assert.equal(result.isError, true);
  assert.deepEqual(result.structuredContent.calls, [], JSON.stringify(result.structuredContent));
  assert.match(result.content[0].text, /refund/);
  await client.close();
});

test("the sizes of the tool text are those of the document", async () => {
  const text = readFileSync(join(HERE, "../../docs/mcp.md"), "utf8");
  for (const count of [5, 50, 500]) {
    const client = await stdio(["--private", "--functions", manyFunctions(count)]);
    const { tools } = await client.listTools();
    const tokens = Math.round(encode(JSON.stringify(tools)).length / 10) * 10;
    await client.close();
    const row = new RegExp(`\\| ${count} \\| ${tokens.toLocaleString("en-US")} \\|`);
    assert.match(text, row, `docs/mcp.md should say that ${count} functions are ${tokens.toLocaleString("en-US")} tokens`);
  }
});

test("a brigd that went away is found again, and what is unchanged is not told", async () => {
  const socket = join(FOLDER, "brig.sock");
  let brigd = await listening(socket);
  const client = await stdio(["--socket", socket, "--functions", FUNCTIONS]);
  let told = 0;
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void told++);
  assert.equal((await run(client, "1")).structuredContent.value, 1);
  brigd.kill("SIGKILL");
  await once(brigd, "exit");
  const lost = await run(client, "1");
  assert.equal(lost.isError, true);
  assert.match(lost.content[0].text, /brig\.sock|lost/);
  brigd = await listening(socket);
  await until("the connection", async () => !(await run(client, "2")).isError);
  assert.equal(told, 0);
  await client.close();
  brigd.kill();
  await once(brigd, "exit");
});

test("standard output has nothing but the protocol, and the end of input ends it", async () => {
  const socket = join(FOLDER, "quiet.sock");
  const brigd = await listening(socket);
  const child = spawn(BRIG, ["mcp", "--socket", socket, "--verbose", "--functions", FUNCTIONS], { env: ENV, stdio: ["pipe", "pipe", "pipe"] });
  const [lines, complaints] = [[], []];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  createInterface(child.stderr).on("line", (line) => complaints.push(line));
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  send({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } } });
  send({ method: "notifications/initialized" });
  send({ id: 2, method: "tools/call", params: { name: "execute", arguments: { code: "console.error('x'); console.log('y'); 1" } } });
  await until("the answer", () => lines.some((line) => JSON.parse(line).id === 2));
  // What brig itself has to say is no part of it either.
  brigd.kill("SIGKILL");
  await until("the complaint", () => complaints.some((line) => line.includes("the connection to brigd was lost")));
  child.stdin.end();
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
  for (const line of lines) assert.equal(JSON.parse(line).jsonrpc, "2.0");
});

test("over TCP a token is needed, and no web page gets in", async () => {
  const file = join(FOLDER, "token");
  writeFileSync(file, `${TOKEN}\n`);
  const { child, at } = await listen(["--listen", "127.0.0.1:0", "--token-file", file]);
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(at), { requestInit: { headers } }));
  assert.equal((await run(client, "(await orders.list({ customer: 'c' })).length")).structuredContent.value, 2);
  const seen = await progressOf(client, "console.log('live'); await orders.list({ customer: 'c' }); await orders.until({})", 3);
  assert.deepEqual(seen.map((note) => note.message), ["live", "calls orders.list", "calls orders.until"]);
  await client.close();
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } } });
  const ask = (more) =>
    new Promise((resolve, reject) => {
      const request = http.request(at, { method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...more } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      request.on("error", reject);
      request.end(body);
    });
  assert.equal(await ask(headers), 200);
  assert.equal(await ask({}), 401);
  assert.equal(await ask({ Authorization: `Bearer ${TOKEN}x` }), 401);
  assert.equal(await ask({ ...headers, Origin: "https://evil.example" }), 403);
  assert.equal(await ask({ ...headers, Origin: at.replace(/:\d+\/$/, ":1") }), 403);
  assert.equal(await ask({ ...headers, Origin: "null" }), 403);
  assert.equal(await ask({ ...headers, Host: "evil.example" }), 403);
  await ended(child);
});

test("a Unix socket is for its user alone, for no web page, and goes away with its server", async () => {
  const socket = join(FOLDER, "mcp.sock");
  const { child } = await listen(["--listen", `unix:${socket}`]);
  assert.equal(statSync(socket).mode & 0o777, 0o600);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } } });
  const ask = (more) =>
    new Promise((resolve, reject) => {
      const headers = { host: "localhost", "content-type": "application/json", accept: "application/json, text/event-stream", ...more };
      const request = http.request({ socketPath: socket, method: "POST", path: "/", headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      request.on("error", reject);
      request.end(body);
    });
  assert.equal(await ask({}), 200);
  for (const origin of ["https://evil.example", "http://localhost", "null"]) assert.equal(await ask({ origin }), 403, origin);
  assert.equal(await ask({ host: "evil.example" }), 403);
  const second = spawn(BRIG, ["mcp", "--private", "--listen", `unix:${socket}`], { env: ENV, stdio: "ignore" });
  assert.equal((await once(second, "exit"))[0], 2, "another one does not take the socket away");
  assert.ok(existsSync(socket));
  await ended(child);
  assert.ok(!existsSync(socket));
});

/** The scenarios about a server in general. All others ask for tools, resources and prompts of
 * the suite's own test server, or for a capability that brig does not declare. */
const GENERAL = ["server-initialize", "ping", "tools-list", "server-sse-polling", "server-sse-multiple-streams", "dns-rebinding-protection"];

test("the conformance suite passes in what is not about its own test server", async (t) => {
  const { child, at } = await listen(["--listen", "127.0.0.1:0"], { BRIG_MCP_TOKEN: TOKEN });
  // The suite knows no tokens: what stands before the server adds it, and nothing else.
  const target = new URL(at);
  const proxy = http.createServer((question, answer) => {
    const own = `:${proxy.address().port}`;
    const ours = (value) => value?.replace(own, `:${target.port}`);
    const headers = { ...question.headers, host: ours(question.headers.host), authorization: `Bearer ${TOKEN}` };
    if (headers.origin) headers.origin = ours(headers.origin);
    const onward = http.request(
      { host: target.hostname, port: target.port, path: question.url, method: question.method, headers },
      (back) => {
        answer.writeHead(back.statusCode, back.headers);
        back.pipe(answer);
      },
    );
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    question.pipe(onward);
  });
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
    child.kill();
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const suite = join(HERE, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
  const node = join(HERE, "node_modules/node/bin/node");
  const { stdout: list } = await promisify(execFile)(node, [suite, "list"]);
  const there = [...list.split("Client scenarios")[0].matchAll(/^ {2}- (\S+)/gm)].map((found) => found[1]);
  const document = readFileSync(join(HERE, "../../docs/mcp.md"), "utf8");
  for (const scenario of there) {
    assert.ok(document.includes(`\`${scenario}\``), `docs/mcp.md does not say whether ${scenario} is run, and why not`);
  }
  for (const scenario of GENERAL) {
    assert.ok(there.includes(scenario), scenario);
    const args = [suite, "server", "--url", `http://127.0.0.1:${proxy.address().port}/`, "--scenario", scenario];
    const { stdout, stderr } = await promisify(execFile)(node, args, { cwd: FOLDER, timeout: 180_000 }).catch((fault) => {
      throw new Error(`${scenario}: ${fault.stdout}\n${fault.stderr}`);
    });
    const said = `${stdout}${stderr}`;
    const [, passed, total] = /Passed: (\d+)\/(\d+)/.exec(said) ?? [];
    assert.ok(Number(total) > 0 && passed === total, `${scenario}: ${said}`);
  }
  await ended(child);
});
