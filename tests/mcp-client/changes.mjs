// What a session of `brig mcp` is told when there are other functions than before.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { BRIG, FOLDER, FUNCTIONS, listening, run, stdio, until } from "./harness.mjs";

const SCHEMA = `input_schema = '{"type": "object"}'`;
const USER = process.getuid() === 0 ? "user = 65432\ngroup = 65432\n" : "";

const FILE = join(FOLDER, "changes.toml");
const FOLDER_OF_FUNCTIONS = join(FOLDER, "changes.d");
mkdirSync(FOLDER_OF_FUNCTIONS, { mode: 0o755 });

function configure(names, denied = []) {
  const one = (name) => `[functions.${name}]\ndescription = "Does ${name}."\n${SCHEMA}\n[functions.${name}.command]\nprogram = "/bin/echo"\n${USER}args = ["1"]\n`;
  // In one step: nobody reads half a file.
  writeFileSync(`${FOLDER_OF_FUNCTIONS}/.store`, names.map(one).join("\n"));
  renameSync(`${FOLDER_OF_FUNCTIONS}/.store`, `${FOLDER_OF_FUNCTIONS}/store.toml`);
  const denial = denied.length ? `, { mode = "deny", patterns = ${JSON.stringify(denied)} }` : "";
  writeFileSync(
    FILE,
    `[functions]\ndir = ${JSON.stringify(FOLDER_OF_FUNCTIONS)}\n[admin]\nuids = [${process.getuid()}]\n[principals."uid:${process.getuid()}"]\ncallbacks = "allow"\nhost_function = { rules = [{ mode = "allow", patterns = ["store.*"] }${denial}] }\n`,
  );
}

test("functions that come, go or are denied while a session is open are told to it", async () => {
  configure(["one"]);
  const [socket, admin] = [join(FOLDER, "changes.sock"), join(FOLDER, "changes-admin.sock")];
  const brigd = await listening(socket, ["--config", FILE, "--admin-socket", admin, "--state", join(FOLDER, "changes-state")]);
  const client = await stdio(["--socket", socket, "--functions", FUNCTIONS]);
  let told = 0;
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void told++);
  const text = async () => (await client.listTools()).tools[0].description;
  const operate = (...args) => promisify(execFile)(BRIG, ["admin", "--admin-socket", admin, ...args]);
  /** Does something, and waits until the session is told, before it has asked. */
  const change = async (what, does) => {
    const before = told;
    await does();
    await until(`the notification of ${what}`, () => told > before);
    return text();
  };
  assert.match(await text(), / {2}one\(/);

  const more = await change("a new function", () => (configure(["one", "two"]), operate("reload")));
  assert.match(more, / {2}one\([^]* {2}two\(/);
  assert.equal((await run(client, "await store.two({})")).isError, false);

  const denied = await change("a denial", () => (configure(["one", "two"], ["store.one"]), operate("reload")));
  assert.ok(!denied.includes("  one(") && denied.includes("  two("), denied);
  assert.equal((await run(client, "await store.one({})")).isError, true);

  const fewer = await change("a function that is gone", () => (configure(["one"]), operate("reload")));
  assert.ok(!fewer.includes("  two(") && fewer.includes("  one("), fewer);

  const revoked = await change("a revoke", () => operate("revoke", "store.one"));
  assert.ok(!revoked.includes("  one("), revoked);
  const refused = await run(client, "await store.one({})");
  assert.equal(refused.structuredContent.calls[0].code, "revoked", JSON.stringify(refused));
  const restored = await change("a restore", () => operate("restore", "store.one"));
  assert.equal(restored, fewer);

  const before = told;
  await operate("reload");
  assert.equal(await text(), fewer);
  assert.equal(told, before, "what is unchanged is not told");
  await client.close();
  brigd.kill();
  await once(brigd, "exit");
});
