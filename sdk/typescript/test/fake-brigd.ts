/** A server that speaks the protocol as a test tells it to. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Message = { id?: number | string | null; method?: string; params?: any; result?: any; error?: any };

/** One accepted connection. */
export class Peer {
  readonly #inbox: Message[] = [];
  readonly #waiting: ((message: Message) => void)[] = [];
  #rest = "";
  readonly closed: Promise<unknown>;

  constructor(readonly socket: Socket) {
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    socket.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    socket.on("error", () => undefined);
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = JSON.parse(line) as Message;
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#inbox.push(message);
      else waiting(message);
    }
  }

  /** The next message. */
  next(): Promise<Message> {
    const message = this.#inbox.shift();
    if (message !== undefined) return Promise.resolve(message);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The next message, which must be this request. */
  async expect(method: string): Promise<Message> {
    const message = await this.next();
    if (message.method !== method) throw new Error(`expected ${method}, got ${JSON.stringify(message)}`);
    return message;
  }

  send(message: object): void {
    this.socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  sendRaw(text: string): void {
    this.socket.write(text);
  }

  answer(id: Message["id"], result: unknown): void {
    this.send({ id, result });
  }

  refuse(id: Message["id"], code: string, more: object = {}): void {
    this.send({ id, error: { code: -32000, message: `refused: ${code}`, data: { code, message: "m", retryable: false, ...more } } });
  }

  /** Asks for a call; `vm`: with which vm the function was declared. */
  call(id: string, evaluation: string, name: string, input: unknown, number = 1, vm?: string): void {
    const params = { evaluation, call: number, function: name, input, deadlineMs: 5000, idempotencyKey: `${evaluation}:${number}`, vm };
    this.send({ id, method: "host.call", params });
  }

  drop(): void {
    this.socket.destroy();
  }
}

/** A listening socket in a folder of its own. */
export class FakeBrigd {
  readonly folder = mkdtempSync(join(tmpdir(), "brig-fake-"));
  readonly socket = join(this.folder, "s");
  #server: Server | undefined;
  readonly #peers: Peer[] = [];
  readonly #waiting: ((peer: Peer) => void)[] = [];
  readonly #all: Peer[] = [];

  async listen(): Promise<this> {
    this.#server = createServer((socket) => {
      const peer = new Peer(socket);
      this.#all.push(peer);
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#peers.push(peer);
      else waiting(peer);
    }).listen(this.socket);
    await once(this.#server, "listening");
    return this;
  }

  /** The next connection. */
  accept(): Promise<Peer> {
    const peer = this.#peers.shift();
    if (peer !== undefined) return Promise.resolve(peer);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Stops listening and hangs up. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const peer of this.#all.splice(0)) peer.drop();
    if (server !== undefined) {
      server.close();
      await once(server, "close");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A result as brigd gives one. */
export function succeeded(value: unknown, evaluation = "ev_1"): object {
  return {
    evaluation,
    outcome: "succeeded",
    value,
    stdout: "",
    stderr: "",
    stdoutTruncated: false,
    stderrTruncated: false,
    warnings: [],
    calls: [],
    usage: { wallMs: 1, cpuMs: 1, hostMs: 0, approvalMs: 0, peakMemoryBytes: 0, hostCalls: 0 },
    sandbox: { level: "full", layers: [] },
  };
}
