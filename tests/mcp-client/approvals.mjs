// Calls that wait for a person, as the user and the model of an MCP client meet them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { Client as NewestClient, StreamableHTTPClientTransport as NewestHttp } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewestStdio } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { BRIG, ENV, FOLDER, FUNCTIONS, TOKEN, ended, listen, listening, run, stdio, until } from "./harness.mjs";

const OWN = process.getuid();
/** May decide, and is another user. */
const ADA = 20_002;
const NEEDS_ROOT = OWN === 0 ? false : "only root can be two users";

const [SOCKET, ADMIN] = [join(FOLDER, "approvals.sock"), join(FOLDER, "approvals-admin.sock")];
const BRIG_OF_ADA = join(FOLDER, "brig");
let brigd;

before(async () => {
  const config = join(FOLDER, "approvals.toml");
  // The rule names the requester too: brigd has to refuse her all the same.
  writeFileSync(
    config,
    `[admin]\napprovers = ["uid:${ADA}", "uid:${OWN}"]\n[principals."uid:${OWN}"]\ncallbacks = { default = "allow", rules = [\n` +
      `  { mode = "ask", patterns = ["orders.list"], ask = { approvers = ["uid:${ADA}", "uid:${OWN}"], wait_seconds = 600 } },\n] }\n`,
  );
  brigd = await listening(SOCKET, ["--config", config, "--admin-socket", ADMIN, "--state", join(FOLDER, "approvals-state")]);
  chmodSync(ADMIN, 0o666);
  copyFileSync(BRIG, BRIG_OF_ADA);
  chmodSync(BRIG_OF_ADA, 0o755);
});

after(async () => {
  brigd.kill();
  await once(brigd, "exit");
});

const LIST = "console.log('began'); (await orders.list({ customer: 'c' })).length";

/** What `brig approve` of some user says. */
const decide = (uid, ...args) =>
  promisify(execFile)(BRIG_OF_ADA, ["approve", "--admin-socket", ADMIN, ...args], { cwd: "/", ...(uid === OWN ? {} : { uid, gid: uid }) });

const waits = (more = []) => ["--socket", SOCKET, "--functions", FUNCTIONS, ...more];

/** A client that is asked, and what it is asked. */
async function asked(answer) {
  const client = await stdio(waits(["--pending-after", "100ms"]), undefined, { elicitation: {} });
  const questions = [];
  client.setRequestHandler(ElicitRequestSchema, (request, extra) => {
    questions.push({ ...request.params, signal: extra.signal });
    return answer(request.params, extra);
  });
  return { client, questions };
}

const never = (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("taken away"))));
const later = async (client, evaluation) => client.callTool({ name: "execute", arguments: { evaluation } });

test("a client that can not be asked hears that the program waits, and later how it ended", { skip: NEEDS_ROOT }, async () => {
  const client = await stdio(waits(["--pending-after", "100ms"]));
  const pending = await run(client, LIST);
  assert.equal(pending.isError, false);
  const { state, evaluation, approvals } = pending.structuredContent;
  assert.equal(state, "waiting_for_approval");
  assert.equal(approvals.length, 1);
  assert.equal(approvals[0].function, "orders.list");
  for (const part of ["pending", approvals[0].approval, evaluation, "Do not send the program again"]) {
    assert.ok(pending.content[0].text.includes(part), `${part} is not in\n${pending.content[0].text}`);
  }
  // Nothing is decided: it still waits, and is still there to be asked for.
  assert.equal((await later(client, evaluation)).structuredContent.state, "waiting_for_approval");
  await decide(ADA, approvals[0].approval, "--yes");
  let result;
  await until("the end", async () => {
    result = await later(client, evaluation);
    return result.structuredContent.state !== "waiting_for_approval";
  });
  assert.equal(result.structuredContent.value, 2);
  assert.equal(result.structuredContent.stdout, "began\n");
  const again = await later(client, evaluation);
  assert.equal(again.isError, true);
  assert.match(again.content[0].text, /told already/);
  await client.close();
});

test("a client that can be asked is, and its user can wait but not approve", { skip: NEEDS_ROOT }, async () => {
  const { client, questions } = await asked(never);
  const running = run(client, LIST);
  await until("the question", () => questions.length === 1);
  const [question] = questions;
  assert.deepEqual(question.requestedSchema.properties.then.oneOf.map((one) => one.const), ["wait", "stop"]);
  assert.match(question.message, /orders\.list[^]*nobody approves their own/);
  const [, approval] = /brig approve (ap_\w+)/.exec(question.message);
  // The one for whom the call would run, although the rule names her.
  await assert.rejects(decide(OWN, approval, "--yes"));
  assert.equal(question.signal.aborted, false);
  await decide(ADA, approval, "--yes");
  assert.equal((await running).structuredContent.value, 2);
  await until("the form is taken away", () => question.signal.aborted);
  await client.close();
});

test("no answer to the question approves the call", async () => {
  const answers = [
    { action: "accept", content: { then: "wait" } },
    { action: "accept", content: { then: "approve" } },
    { action: "accept", content: {} },
    { action: "decline" },
    { action: "cancel" },
  ];
  for (const answer of answers) {
    const { client, questions } = await asked(() => answer);
    const result = await run(client, LIST);
    assert.equal(questions.length, 1);
    assert.equal(result.structuredContent.state, "waiting_for_approval", JSON.stringify([answer, result]));
    await client.close();
  }
});

test("a user who ends the program ends it, and the call did not run", async () => {
  const { client } = await asked(() => ({ action: "accept", content: { then: "stop" } }));
  const result = await run(client, LIST);
  assert.equal(result.structuredContent.outcome, "cancelled", JSON.stringify(result));
  assert.deepEqual(result.structuredContent.calls.map((call) => [call.function, call.state]), [["orders.list", "refused"]]);
  await client.close();
});

test("a denied call is told to the model as the decision of a person", { skip: NEEDS_ROOT }, async () => {
  const client = await stdio(waits(["--pending-after", "100ms"]));
  const { evaluation, approvals } = (await run(client, LIST)).structuredContent;
  await decide(ADA, "deny", approvals[0].approval);
  let result;
  await until("the end", async () => {
    result = await later(client, evaluation);
    return result.structuredContent.state !== "waiting_for_approval";
  });
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /approval_denied/);
  await client.close();
});

test("what waits when the client goes away is over", async () => {
  const client = await stdio(waits(["--pending-after", "100ms"]));
  const { approvals } = (await run(client, LIST)).structuredContent;
  await client.close();
  if (OWN !== 0) return;
  await until("the end of the question", async () => !(await decide(ADA)).stdout.includes(approvals[0].approval));
});

const HEADERS = { requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } } };
const overHttp = (more = []) => listen(["--listen", "127.0.0.1:0", ...more], { BRIG_MCP_TOKEN: TOKEN }, ["--socket", SOCKET]);

test("what waits in one session is no other session's, and ends with its own", async () => {
  const { child, at } = await overHttp(["--pending-after", "100ms"]);
  const [one, other] = [new Client({ name: "one", version: "1" }), new Client({ name: "other", version: "1" })];
  const transport = new StreamableHTTPClientTransport(new URL(at), HEADERS);
  await one.connect(transport);
  await other.connect(new StreamableHTTPClientTransport(new URL(at), HEADERS));
  const { evaluation, approvals } = (await run(one, LIST)).structuredContent;
  const taken = await later(other, evaluation);
  assert.equal(taken.isError, true);
  assert.match(taken.content[0].text, /no program "ev_\w+" waits here/);
  assert.equal((await later(one, evaluation)).structuredContent.state, "waiting_for_approval", "it is still there for whom it is");
  await transport.terminateSession();
  if (OWN === 0) await until("the end of the question", async () => !(await decide(ADA)).stdout.includes(approvals[0].approval));
  await Promise.all([one.close(), other.close()]);
  await ended(child);
});

/** A client of the newest version of the protocol, which could show forms, and what it was asked. */
async function newest(transport) {
  const questions = [];
  const client = new NewestClient({ name: "tests", version: "1" }, { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: "2026-07-28" } } });
  client.setRequestHandler("elicitation/create", (request) => (questions.push(request), { action: "accept", content: { then: "stop" } }));
  await client.connect(transport);
  return { client, questions };
}

const NEWEST = {
  "standard input and output": async () => ({ transport: new NewestStdio({ command: BRIG, args: ["mcp", ...waits(["--pending-after", "100ms"])], env: ENV, stderr: "pipe" }) }),
  HTTP: async () => {
    const { child, at } = await overHttp(["--pending-after", "100ms"]);
    return { child, transport: new NewestHttp(new URL(at), HEADERS) };
  },
};

for (const [way, open] of Object.entries(NEWEST)) {
  test(`a client of the newest version is not asked, and has a program that waits as pending, over ${way}`, { skip: NEEDS_ROOT }, async () => {
    const { child, transport } = await open();
    const { client, questions } = await newest(transport);
    const execute = (args) => client.callTool({ name: "execute", arguments: args });
    assert.equal((await client.listTools()).tools[0].name, "execute");
    assert.equal((await execute({ code: "1 + 1" })).structuredContent.value, 2);
    const { state, evaluation, approvals } = (await execute({ code: LIST })).structuredContent;
    assert.equal(state, "waiting_for_approval");
    assert.equal((await execute({ evaluation })).structuredContent.state, "waiting_for_approval");
    await decide(ADA, approvals[0].approval, "--yes");
    let result;
    await until("the end", async () => {
      result = await execute({ evaluation });
      return result.structuredContent.state !== "waiting_for_approval";
    });
    assert.equal(result.structuredContent.value, 2);
    assert.deepEqual(questions, []);
    await client.close();
    if (child) await ended(child);
  });
}

test("arguments that name a program and a new one are refused", async () => {
  const client = await stdio(waits());
  for (const args of [{ evaluation: "ev_1", code: "1" }, { evaluation: 5 }]) {
    const result = await client.callTool({ name: "execute", arguments: args });
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /nothing may be beside it/);
  }
  const unknown = await later(client, "ev_none");
  assert.equal(unknown.isError, true);
  assert.match(unknown.content[0].text, /"ev_none"/);
  await client.close();
});
