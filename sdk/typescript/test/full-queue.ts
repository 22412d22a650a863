/** A socket whose queue of connections is full until a test lets it be taken. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

/** A thread of its own, so that nothing is taken while it stands; then each request is answered. */
const SERVER = `
  const { parentPort, workerData } = require("node:worker_threads");
  const server = require("node:net").createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (text) => {
      for (const line of String(text).split("\\n").filter(Boolean)) {
        const result = { protocolVersion: "1" };
        socket.write(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(line).id, result }) + "\\n");
      }
    });
  });
  server.listen({ path: workerData.path, backlog: 1 }, () => {
    parentPort.postMessage("listening");
    Atomics.wait(workerData.gate, 0, 0);
  });
`;

export class FullQueue {
  readonly #folder = mkdtempSync(join(tmpdir(), "brig-full-"));
  readonly #gate = new Int32Array(new SharedArrayBuffer(4));
  readonly #queued: Socket[] = [];
  readonly path = join(this.#folder, "s");
  readonly #server = new Worker(SERVER, { eval: true, workerData: { path: this.path, gate: this.#gate } });

  /** Once there is no room in it. */
  async full(): Promise<this> {
    await once(this.#server, "message");
    while (await this.#oneMore());
    return this;
  }

  /** Whether there was room for one. */
  async #oneMore(): Promise<boolean> {
    const socket = connect(this.path);
    try {
      await once(socket, "connect");
    } catch (fault) {
      if ((fault as NodeJS.ErrnoException).code === "EAGAIN") return false;
      throw fault;
    }
    this.#queued.push(socket.on("error", () => undefined));
    return true;
  }

  /** Whether it is full now. */
  async isFull(): Promise<boolean> {
    return !(await this.#oneMore());
  }

  /** From now on all that wait are taken. */
  take(): void {
    Atomics.store(this.#gate, 0, 1);
    Atomics.notify(this.#gate, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#queued) socket.destroy();
    this.take();
    await this.#server.terminate();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
