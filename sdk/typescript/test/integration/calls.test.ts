/** Calls of configured functions without a program, through a real brigd that asks a person for some. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { test } from "node:test";
import { type ApprovalNote, BrigError, type Client, connect } from "brig";
import { brigd } from "../brigd.js";

const OWN = process.getuid?.() ?? 0;

function configured(folder: string): string {
  const user = OWN === 0 ? 'user = "nobody"\n' : "";
  const one = (name: string, args: string) =>
    `[functions.${name}]\neffect = "read"\n[functions.${name}.command]\nprogram = "/usr/bin/printf"\nargs = ${args}\noutput = "text"\n${user}`;
  mkdirSync(join(folder, "functions.d"));
  writeFileSync(join(folder, "functions.d/till.toml"), one("open", '["%s", "open"]') + one("count", '["%s", "{call.idempotency_key}"]'));
  const rules = `{ mode = "allow", patterns = ["**"] }, { mode = "ask", patterns = ["till.open"], ask = { approvers = ["uid:20002"], wait_seconds = 1 } }`;
  const config = join(folder, "brig.toml");
  writeFileSync(config, `[admin]\napprovers = ["uid:20002"]\n[principals."uid:${OWN}"]\nhost_function = { rules = [${rules}] }\n`);
  return config;
}

async function listening(folder: string): Promise<{ client: Client; end: () => Promise<void> }> {
  const socket = join(folder, "brig.sock");
  const args = ["--config", configured(folder), "--socket", socket, "--admin-socket", join(folder, "admin.sock"), "--state", join(folder, "state")];
  const child = spawn(brigd(), ["--log", "warn", ...args], { stdio: "inherit" });
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      const client = await connect({ socket });
      const end = async (): Promise<void> => {
        await client.close();
        child.kill();
        if (child.exitCode === null) await once(child, "exit");
      };
      return { client, end };
    } catch (fault) {
      if (child.exitCode !== null || Date.now() > deadline) throw fault;
      await pause(20);
    }
  }
}

test("a configured function is called without a program, and tells that it waits for a person", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "brig-calls-"));
  chmodSync(folder, 0o755);
  const { client, end } = await listening(folder);
  try {
    const first = await client.call<string>("till.count", {}, { idempotencyKey: "k" });
    assert.equal(first.call.state, "completed");
    assert.deepEqual(await client.call("till:count", {}, { idempotencyKey: "k2" }).then(({ call }) => call.state), "completed");
    assert.equal((await client.call("till.count", {}, { idempotencyKey: "k" })).value, first.value, "the same answer for the same key");
    const told: ApprovalNote[] = [];
    const asked = await client.call("till.open", {}, { onApproval: (note) => void told.push(note) });
    assert.deepEqual([asked.call.state, asked.error?.code], ["refused", "approval_expired"]);
    assert.deepEqual(told.map(({ function: name, call }) => [name, call]), [["till.open", 1]]);
    assert.match(told[0]?.approval ?? "", /^ap_/);
    await assert.rejects(client.call("till.opne"), (fault) => fault instanceof BrigError && fault.nothingRan && /till\.open/.test(fault.hint ?? ""));
  } finally {
    await end();
    rmSync(folder, { recursive: true, force: true });
  }
});
