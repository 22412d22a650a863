// What the tests of `brig mcp` share: functions, clients, and waiting with a deadline.
// BRIG and BRIGD name the binaries. Never asserts anything about brig.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

export const HERE = dirname(fileURLToPath(import.meta.url));
export const { BRIG, BRIGD } = process.env;
if (!BRIG || !BRIGD) throw new Error("BRIG and BRIGD must name the binaries; run tests/mcp");
export const ENV = { ...process.env, BRIG_SOCKET: "", BRIG_MCP_TOKEN: "" };
export const FOLDER = mkdtempSync(join(tmpdir(), "brig-mcp-"));
export const TOKEN = "a-token-of-the-tests-only";
// Other users are let in: some tests are about what they may.
chmodSync(FOLDER, 0o755);
after(() => rmSync(FOLDER, { recursive: true, force: true }));

/** Seconds that nobody else's processes sleep, by which this one is known. */
export const WAITS = `60.${process.pid}`;

export const FUNCTIONS = join(FOLDER, "functions.json");
writeFileSync(
  FUNCTIONS,
  JSON.stringify({
    orders: {
      list: {
        description: "List a customer's orders.",
        inputSchema: { type: "object", properties: { customer: { type: "string" } }, required: ["customer"] },
        outputSchema: { type: "array", items: { type: "object", properties: { id: { type: "string" }, amount: { type: "number" } }, required: ["id", "amount"] } },
        examples: [{ description: "All of one customer", input: { customer: "c1" } }],
        static: [{ id: "o1", amount: 40 }, { id: "o2", amount: 2 }],
      },
      wait: { command: ["sh", "-c", `echo started > ${join(FOLDER, "started")}; exec sleep ${WAITS}`] },
      // Answers once the test has made this file: what the client was told before it has arrived.
      until: { command: ["sh", "-c", `while [ ! -e ${join(FOLDER, "go")} ]; do sleep 0.02; done; echo true`] },
      refund: { command: ["sh", "-c", "echo no money left >&2; exit 3"] },
    },
  }),
);

/** A file of many functions: what a large catalogue is. */
export function manyFunctions(count) {
  const path = join(FOLDER, `many${count}.json`);
  const names = ["create", "list", "update", "delete", "search"];
  const nouns = ["Issue", "Order", "Customer", "Invoice", "Page", "Branch", "Message", "Event", "File", "User"];
  const all = {};
  for (let index = 0; index < count; index++) {
    const verb = names[index % 5];
    const noun = nouns[Math.floor(index / 5) % 10];
    const collection = (all[`service${Math.floor(index / 50)}`] ??= {});
    collection[`${verb}${noun}`] = {
      description: `${verb[0].toUpperCase()}${verb.slice(1)} one ${noun.toLowerCase()} of the workspace, by its id or its fields.`,
      inputSchema: {
        type: "object",
        properties: {
          id: { type: "string", description: `Id of the ${noun.toLowerCase()}.` },
          title: { type: "string", description: "Title, as it is shown." },
          state: { type: "string", enum: ["open", "closed", "draft"] },
          labels: { type: "array", items: { type: "string" } },
          limit: { type: "integer", minimum: 1, maximum: 100, default: 30 },
        },
        required: ["id"],
      },
      outputSchema: { type: "object", properties: { id: { type: "string" }, url: { type: "string", format: "uri" } }, required: ["id"] },
      static: { id: "x" },
    };
  }
  writeFileSync(path, JSON.stringify(all));
  return path;
}

export async function stdio(args = ["--private", "--functions", FUNCTIONS], env = ENV, capabilities = {}) {
  const client = new Client({ name: "tests", version: "1" }, { capabilities });
  const transport = new StdioClientTransport({ command: BRIG, args: ["mcp", ...args], env, stderr: "pipe" });
  await client.connect(transport);
  return client;
}

export const run = (client, code, options, inputs) => client.callTool({ name: "execute", arguments: { code, ...(inputs ? { inputs } : {}) } }, undefined, options);

/** Waits for a condition, and fails loudly when it does not come. */
export async function until(what, holds) {
  const deadline = Date.now() + 60_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what} did not come within 60 s`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A brigd on a socket of its own. */
export async function listening(socket, args = []) {
  const child = spawn(BRIGD, ["--log", "warn", "--socket", socket, ...args], { stdio: ["ignore", "inherit", "inherit"] });
  await until("brigd", async () => {
    if (child.exitCode !== null) throw new Error(`brigd ended with ${child.exitCode} before it was ready`);
    try {
      await promisify(execFile)(BRIG, ["eval", "--socket", socket, "1"]);
      return true;
    } catch {
      return false;
    }
  });
  return child;
}

/** `brig mcp --listen`, once it says where. */
export async function listen(args, env = {}, on = ["--private"]) {
  const child = spawn(BRIG, ["mcp", ...on, "--functions", FUNCTIONS, ...args], { env: { ...ENV, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  const lines = createInterface(child.stderr);
  for await (const line of lines) {
    const at = /MCP over HTTP on (\S+)/.exec(line);
    if (at) return { child, at: at[1] };
  }
  throw new Error("brig mcp ended before it listened");
}

export async function ended(child) {
  child.kill("SIGTERM");
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`brig mcp ended with ${code}`);
}
