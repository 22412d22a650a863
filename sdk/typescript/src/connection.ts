/**
 * One connection to brigd: lines out, lines in, who waits for what.
 *
 * Owns the socket, the requests in flight and the calls that handlers are answering.
 * Keeps the process alive only while something is in flight. Never connects again: that
 * is the client's.
 */

import type { Socket } from "node:net";
import { BrigError } from "./errors.js";
import type { CallOutcome, Handler, HostCall } from "./functions.js";
import { LineReader } from "./line.js";
import { FULL, QUEUE_MS, reach } from "./reach.js";
import type { ApprovalNote, Warning } from "./types.js";

/** Longest line that brigd takes, in bytes. */
const REQUEST_LINE_BYTES = 16 * 1024 * 1024;
/** Longest line taken from brigd: a value and two console streams at their highest limits. */
const ANSWER_LINE_BYTES = 256 * 1024 * 1024;
/** Refusals that brigd sends without an id, because it sends this client away. */
const SENT_AWAY = ["not_permitted", "overloaded", "quota_exceeded", "shutting_down"];

/** How the id begins of a call without a program: `functions.call`. */
const CALL_PREFIX = "fc_";

/** What a request offers to its evaluation while that runs. */
export interface Offer {
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly onStdout?: ((text: string) => void) | undefined;
  readonly onStderr?: ((text: string) => void) | undefined;
  readonly onWarning?: ((warning: Warning) => void) | undefined;
  readonly onApproval?: ((note: ApprovalNote) => void) | undefined;
}

/** Who is told that a call without a program waits for a person. */
export interface Asking {
  readonly function: string;
  readonly onApproval: (note: ApprovalNote) => void;
}

interface Pending {
  asks?: Asking | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (fault: BrigError) => void;
  readonly offer: Offer | undefined;
  /** Who answers for the functions of the vm that it makes. */
  readonly makes: Offer["handlers"] | undefined;
  /** Whether brigd was asked to say which evaluation it becomes. */
  readonly announced: boolean;
  evaluation: string | undefined;
}

interface Answering {
  readonly evaluation: string;
  readonly controller: AbortController;
}

/** A request in flight. */
export interface Asked {
  readonly answer: Promise<unknown>;
  /** Asks brigd to end it; the answer still comes. */
  cancel(): void;
}

type Id = number | string;
type Message = { id?: Id | null; method?: string; params?: Record<string, unknown>; result?: unknown; error?: unknown };

/** One connection. */
export class Connection {
  readonly #socket: Socket;
  readonly #reader = new LineReader(ANSWER_LINE_BYTES);
  readonly #requests = new Map<number, Pending>();
  readonly #evaluations = new Map<string, number>();
  readonly #calls = new Map<Id, Answering>();
  /** Of the vms that were made here; another connection may evaluate in them. */
  readonly #kept = new Map<string, Offer["handlers"]>();
  #makesVms = false;
  #lastId = 0;
  #lost: BrigError | undefined;
  /** Resolves once the socket takes more. */
  #room: Promise<void> = Promise.resolve();
  #drained: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.unref();
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", (fault) => this.#lose(lost(fault.message, fault)));
    socket.on("drain", () => this.#drain());
    socket.on("close", () => {
      this.#lose(lost("brigd closed it"));
      this.#drain();
    });
  }

  /**
   * Connects to the socket at `path`. A place in a full queue of connections is waited for,
   * `withinMs` so long.
   *
   * @throws {BrigError} `connect_failed` when nothing answers.
   */
  static async open(path: string, withinMs = QUEUE_MS): Promise<Connection> {
    try {
      return new Connection(await reach(path, withinMs));
    } catch (cause) {
      const fault = cause as NodeJS.ErrnoException;
      const why = fault.code === FULL ? fault.message : (fault.code ?? fault.message);
      throw new BrigError("connect_failed", `no brigd answers on ${path}: ${why}`, { retryable: true, cause });
    }
  }

  /** Whether it can still be used. */
  get alive(): boolean {
    return this.#lost === undefined;
  }

  /**
   * Sends a request. `params` is JSON text of an object. `makes`: who answers for the
   * functions of the vm that it makes, whoever evaluates in that.
   */
  request(method: string, params: string, offer?: Offer, makes?: Offer["handlers"]): Asked {
    const id = ++this.#lastId;
    this.#makesVms ||= makes !== undefined;
    const announced = offer !== undefined && (this.#makesVms || this.#oneIsUnnamed());
    const said = announced ? withMember(params, '"announce":true') : params;
    const line = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${said}}\n`;
    const answer = new Promise<unknown>((resolve, reject) => {
      const fault = this.#lost ?? refuseLong(line);
      if (fault !== undefined) return reject(fault);
      if (this.#requests.size === 0) this.#socket.ref();
      this.#requests.set(id, { resolve, reject, offer, makes, announced, evaluation: undefined });
      void this.#room.then(() => this.#write(line));
    });
    return { answer, cancel: () => this.#cancel(id) };
  }

  /** The vm is no more. */
  letGo(vm: string): void {
    this.#kept.delete(vm);
  }

  /** Sends a call without a program. Its id is told to nobody, so approvals go by its function. */
  call(params: string, asks: Asking | undefined): Asked {
    const asked = this.request("functions.call", params);
    const pending = this.#requests.get(this.#lastId);
    if (pending !== undefined) pending.asks = asks;
    return asked;
  }

  /** Ends it. What is in flight is rejected. */
  close(reason: BrigError = new BrigError("closed", "the client was closed", { nothingRan: false })): void {
    this.#lose(reason);
  }

  #cancel(id: number): void {
    // In the order of the writes, so that it can not come before its request.
    void this.#room.then(() => {
      if (this.#requests.has(id)) this.#write(`{"jsonrpc":"2.0","method":"cancel","params":{"id":${id}}}\n`);
    });
  }

  #write(line: string): void {
    if (this.#lost !== undefined || this.#socket.write(line)) return;
    // All that waited for room write at once: they make one promise of it, not one each.
    if (this.#drained === undefined) this.#room = new Promise((resolve) => (this.#drained = resolve));
  }

  #drain(): void {
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  #read(chunk: Buffer): void {
    try {
      for (const line of this.#reader.feed(chunk)) {
        if (line.trim() !== "") this.#take(JSON.parse(line) as Message);
      }
    } catch (fault) {
      const message = `brigd sent something that is not the protocol: ${fault instanceof Error ? fault.message : String(fault)}`;
      this.#lose(new BrigError("protocol_error", message, { nothingRan: false, cause: fault }));
    }
  }

  #take(message: Message): void {
    if (this.#lost !== undefined) return;
    const { id, method, params = {} } = message;
    if (method === "host.call" && id !== undefined && id !== null) return this.#hostCall(id, params);
    if (method !== undefined && id !== undefined) return this.#refuse(id, method);
    if (method !== undefined) return this.#told(method, params);
    if (typeof id === "number") return this.#answered(id, message);
    if (message.error !== undefined) this.#sentAway(BrigError.fromWire(message.error));
  }

  #answered(id: number, message: Message): void {
    const pending = this.#requests.get(id);
    if (pending === undefined) return;
    this.#requests.delete(id);
    this.#forget(pending);
    if (this.#requests.size === 0) this.#socket.unref();
    // Before the next line is read, which may be a call of it.
    if (pending.makes !== undefined && message.error === undefined) this.#kept.set((message.result as { vm: string }).vm, pending.makes);
    if (message.error === undefined) pending.resolve(message.result);
    else pending.reject(BrigError.fromWire(message.error));
  }

  /** An evaluation is over: nobody awaits what its handlers still do. */
  #forget(pending: Pending): void {
    if (pending.evaluation === undefined) return;
    this.#evaluations.delete(pending.evaluation);
    for (const [id, call] of this.#calls) {
      if (call.evaluation === pending.evaluation) this.#abort(id, "cancelled");
    }
  }

  #abort(id: Id, reason: string): void {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    call?.controller.abort(new DOMException(`the call is over: ${reason}`, "AbortError"));
  }

  /** An error without an id: brigd sends this client away, or could not read a line of it. */
  #sentAway(fault: BrigError): void {
    if (SENT_AWAY.includes(fault.code)) return this.#lose(fault);
    this.#lose(new BrigError("protocol_error", `brigd could not read a request: ${fault.message}`, { nothingRan: false, cause: fault }));
  }

  #told(method: string, params: Record<string, unknown>): void {
    const evaluation = String(params["evaluation"]);
    switch (method) {
      case "host.cancel":
        return this.#abort(params["id"] as Id, String(params["reason"]));
      case "evaluation.started":
        return this.#name(params["id"] as number, evaluation);
      case "evaluation.output": {
        const offer = this.#offer(evaluation);
        const listener = params["stream"] === "stderr" ? offer?.onStderr : offer?.onStdout;
        return listen(listener, String(params["text"]));
      }
      case "evaluation.warning":
        return listen(this.#offer(evaluation)?.onWarning, params["warning"] as Warning);
      case "evaluation.approval":
        return this.#parked(evaluation, params as unknown as ApprovalNote);
      default:
      // A newer brigd may tell more.
    }
  }

  #parked(evaluation: string, note: ApprovalNote): void {
    if (!evaluation.startsWith(CALL_PREFIX)) return listen(this.#offer(evaluation)?.onApproval, note);
    for (const { asks } of this.#requests.values()) if (asks?.function === note.function) listen(asks.onApproval, note);
  }

  #oneIsUnnamed(): boolean {
    return [...this.#requests.values()].some(isUnnamed);
  }

  #name(request: number, evaluation: string): void {
    const pending = this.#requests.get(request);
    if (pending === undefined) return;
    pending.evaluation = evaluation;
    this.#evaluations.set(evaluation, request);
  }

  /**
   * The offer of an evaluation. One that was not announced belongs to the only request
   * that did not ask for it: there is never more than one such.
   */
  #offer(evaluation: string): Offer | undefined {
    const known = this.#evaluations.get(evaluation);
    if (known !== undefined) return this.#requests.get(known)?.offer;
    const unnamed = [...this.#requests].filter(([, pending]) => isUnnamed(pending));
    const [first] = unnamed;
    if (first === undefined || unnamed.length > 1) return undefined;
    this.#name(first[0], evaluation);
    return first[1].offer;
  }

  /** What answers a call: a function of a vm is that of the vm, whoever evaluates in it. */
  #offered(evaluation: string, vm: unknown): Offer["handlers"] | undefined {
    return vm === undefined ? this.#offer(evaluation)?.handlers : this.#kept.get(String(vm));
  }

  #hostCall(id: Id, params: Record<string, unknown>): void {
    const evaluation = String(params["evaluation"]);
    const name = String(params["function"]);
    const handlers = this.#offered(evaluation, params["vm"]);
    if (handlers === undefined) return this.#answer(id, gone("this client runs no such evaluation", "cancelled"));
    const handler = handlers.get(name);
    if (handler === undefined) return this.#answer(id, gone(`${name} is not offered here`, "unknown_function"));
    const controller = new AbortController();
    this.#calls.set(id, { evaluation, controller });
    const call: HostCall = {
      signal: controller.signal,
      deadline: new Date(Date.now() + Number(params["deadlineMs"])),
      evaluation,
      call: Number(params["call"]),
      idempotencyKey: String(params["idempotencyKey"]),
    };
    void handler(params["input"], call).then((outcome) => {
      // Nobody awaits the answer of a call that was cancelled.
      if (this.#calls.delete(id)) this.#answer(id, outcome);
    });
  }

  #answer(id: Id, outcome: CallOutcome): void {
    const start = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},`;
    const line = "output" in outcome ? `${start}"result":${outcome.output}}\n` : `${start}"error":${JSON.stringify(outcome.failure)}}\n`;
    if (refuseLong(line) === undefined) return this.#write(line);
    const most = `the function's answer is larger than one line may be (${REQUEST_LINE_BYTES} bytes)`;
    this.#write(`${start}"error":${JSON.stringify(gone(most, "output_too_large").failure)}}\n`);
  }

  #refuse(id: Id | null, method: string): void {
    const error = { code: -32601, message: `a client answers host.call only, not ${JSON.stringify(method.slice(0, 100))}` };
    this.#write(`${JSON.stringify({ jsonrpc: "2.0", id, error })}\n`);
  }

  #lose(reason: BrigError): void {
    if (this.#lost !== undefined) return;
    this.#lost = reason;
    this.#socket.destroy();
    const waiting = [...this.#requests.values()];
    this.#requests.clear();
    this.#evaluations.clear();
    for (const id of [...this.#calls.keys()]) this.#abort(id, "client_gone");
    for (const pending of waiting) pending.reject(reason);
  }
}

function isUnnamed(pending: Pending): boolean {
  return pending.offer !== undefined && !pending.announced && pending.evaluation === undefined;
}

function withMember(params: string, member: string): string {
  return params === "{}" ? `{${member}}` : `${params.slice(0, -1)},${member}}`;
}

function refuseLong(line: string): BrigError | undefined {
  // A UTF-16 unit has at most 3 bytes, so most lines need not be measured.
  if (line.length * 3 <= REQUEST_LINE_BYTES) return undefined;
  const length = Buffer.byteLength(line) - 1;
  if (length <= REQUEST_LINE_BYTES) return undefined;
  return new BrigError("line_too_long", `the request has ${length} bytes; one line has at most ${REQUEST_LINE_BYTES}. Nothing was sent`);
}

/** A listener's error is its own: it must not end what everyone shares, nor be lost. */
function listen<T>(listener: ((told: T) => void) | undefined, told: T): void {
  try {
    listener?.(told);
  } catch (fault) {
    queueMicrotask(() => {
      throw fault;
    });
  }
}

function gone(message: string, code: string): { readonly failure: { code: -32000; message: string; data: { code: string } } } {
  return { failure: { code: -32000, message, data: { code } } };
}

function lost(why: string, cause?: unknown): BrigError {
  const message = `the connection to brigd was lost before the answer came: ${why}. Whether anything ran is unknown`;
  return new BrigError("connection_lost", message, { nothingRan: false, cause });
}
