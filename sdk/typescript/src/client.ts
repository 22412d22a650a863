/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The client: methods of the protocol as functions.
 *
 * Owns one connection at a time, made again when it is gone. Never retries a request:
 * whether something ran is the caller's to judge.
 */

import type { Connection, Offer } from "./connection.js";
import { type Endpoint, endpointOf } from "./endpoint.js";
import { BrigError } from "./errors.js";
import { type HostFunctions, type PreparedFunctions, prepareFunctions } from "./functions.js";
import type { JsonValue } from "./json.js";
import { callParams, callResultOf, checkParams, detachParams, evaluateParams, neverSent, resultOf, statusOf, text, typesParams, vmParams } from "./requests.js";
import { refused, typeFaults } from "./typecheck.js";
import type {
  CallOptions,
  CallResult,
  CheckOptions,
  CheckResult,
  ConnectOptions,
  DetachOptions,
  EvaluateOptions,
  EvaluateResult,
  EvaluationError,
  EvaluationStatus,
  FunctionTypes,
  ServerInfo,
  VmInfo,
  VmOptions,
} from "./types.js";
import { Vm, type VmHost } from "./vm.js";

/** Version of this package, as it tells brigd. */
const VERSION = "0.1.0";

/** A client of one brigd. Any number of evaluations can run on it at once. */
export class Client implements VmHost {
  readonly #endpoint: Endpoint;
  #opening: Promise<Connection> | undefined;
  #connection: Connection | undefined;
  #closed = false;

  /** Connects when it is first used; `connect` does so at once. */
  constructor(options: ConnectOptions = {}) {
    this.#endpoint = endpointOf(options);
  }

  /** Path of the socket, once there is one. */
  get socket(): string | undefined {
    return this.#endpoint.socket;
  }

  /**
   * Runs a program. One that fails is a result.
   *
   * @throws {BrigError} when there is no result; `nothingRan` says whether that is certain.
   * @throws {SchemaConversionError | TypeError} for options that can not be sent.
   */
  async evaluate<T = JsonValue, const Schemas = any>(source: string, options: EvaluateOptions<Schemas> = {}): Promise<EvaluateResult<T>> {
    return this.run<T>(source, options as EvaluateOptions);
  }

  /**
   * Parses a program without running it, and checks its types where `hostFunctions` or
   * `types` are given.
   *
   * @throws {BrigError} `typescript_missing` when types are to be checked without a compiler.
   */
  async check<const Schemas = any>(source: string, options: CheckOptions<Schemas> = {}): Promise<CheckResult> {
    const parsed = (await this.#ask("check", checkParams(source, options as CheckOptions))) as { ok: boolean; error?: EvaluationError };
    if (!parsed.ok && parsed.error !== undefined) return { ok: false, error: parsed.error, errors: [parsed.error] };
    if (!(options.types ?? options.hostFunctions !== undefined)) return { ok: true };
    const { declarations } = await this.types(options.hostFunctions);
    const errors = await typeFaults({ source, declarations, form: options.form, language: options.language });
    const [error] = errors;
    return error === undefined ? { ok: true } : { ok: false, error, errors };
  }

  /**
   * TypeScript declarations of the configured functions and of these, and the tool that
   * offers them to a model. `functions`: patterns that narrow the configured ones; left
   * out: all.
   */
  async types<const Schemas = any>(
    hostFunctions?: HostFunctions<Schemas>,
    options: { readonly functions?: readonly string[] | undefined } = {},
  ): Promise<FunctionTypes> {
    const functions = prepareFunctions(hostFunctions as HostFunctions | undefined);
    return (await this.#ask("functions.types", typesParams(functions, options.functions))) as FunctionTypes;
  }

  /**
   * Runs a program that goes on without this client: gives its id and state once it runs.
   * Any client of the same user asks for its answer with `waitEvaluation`.
   *
   * @throws {BrigError} when it does not run.
   * @throws {TypeError} for options that can not be sent.
   */
  async detach<T = JsonValue>(source: string, options: DetachOptions = {}): Promise<EvaluationStatus<T>> {
    return statusOf<T>(await this.#ask("evaluate", detachParams(source, options)));
  }

  /** How far an evaluation of this user is, and its answer once it is over. */
  async getEvaluation<T = JsonValue>(evaluation: string): Promise<EvaluationStatus<T>> {
    return statusOf<T>(await this.#ask("evaluations.get", text("getEvaluation", { evaluation })));
  }

  /** The same, once it is over or the time is: 30 s when left out, 10 minutes at most. */
  async waitEvaluation<T = JsonValue>(evaluation: string, options: { readonly timeoutMs?: number } = {}): Promise<EvaluationStatus<T>> {
    const { timeoutMs } = options;
    return statusOf<T>(await this.#ask("evaluations.wait", text("waitEvaluation", { evaluation, timeoutMs })));
  }

  /**
   * Calls a configured function without a program. A call that was refused or failed is a
   * result. `name`: `collection.function`, or its command spelling `collection:function`.
   *
   * @throws {BrigError} when there is no result; `nothingRan` says whether that is certain.
   */
  async call<T = JsonValue>(name: string, input?: object, options: CallOptions = {}): Promise<CallResult<T>> {
    const { signal, onApproval } = options;
    const params = callParams(name, input, options);
    const never = (): BrigError => new BrigError("cancelled", "the signal was aborted before the call was sent; nothing ran", { retryable: true });
    if (aborted(signal)) throw never();
    const connection = await this.#connect();
    if (aborted(signal)) throw never();
    const asked = connection.call(params, onApproval && { function: name, onApproval });
    const undo = signal === undefined ? undefined : whenAborted(signal, asked.cancel);
    try {
      return callResultOf<T>(await asked.answer);
    } finally {
      undo?.();
    }
  }

  /** Makes a vm: a worker that keeps its realm between evaluations. */
  async createVm<const Schemas = any>(options: VmOptions<Schemas> = {}): Promise<Vm> {
    const functions = prepareFunctions(options.hostFunctions as HostFunctions | undefined);
    const params = vmParams(options as VmOptions, functions);
    const connection = await this.#connect();
    const made = (await connection.request("vm.create", params, undefined, functions.handlers).answer) as {
      vm: string;
      idleTimeoutMs: number;
      lifetimeMs: number;
    };
    const { permissions, timeoutMs, output } = options;
    return new Vm(this, made, { permissions, timeoutMs, output });
  }

  /** The vms of this principal. */
  async listVms(): Promise<VmInfo[]> {
    return ((await this.#ask("vm.list", "{}")) as { vms: VmInfo[] }).vms;
  }

  /** What brigd says of itself: version, limits of this principal, active sandbox layers. */
  async initialize(): Promise<ServerInfo> {
    const params = text("initialize", { protocolVersion: "1", client: { name: "brig-typescript", version: VERSION } });
    return (await this.#ask("initialize", params)) as ServerInfo;
  }

  /** Any other method of the protocol. */
  async request(method: string, params: object = {}): Promise<JsonValue> {
    const answer = (await this.#ask(method, text(method, params))) as JsonValue;
    if (method === "vm.dispose") this.#connection?.letGo(String((params as { vm?: unknown }).vm));
    return answer;
  }

  /** Ends the connection, and a brigd that this client started. What is in flight is rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    const opening = this.#opening;
    this.#connection?.close();
    await opening?.then(
      (connection) => connection.close(),
      () => undefined,
    );
    await this.#endpoint.dispose();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal Runs a program. */
  async run<T>(source: string, options: EvaluateOptions): Promise<EvaluateResult<T>> {
    const functions = prepareFunctions(options.hostFunctions);
    const params = evaluateParams(source, options, functions);
    const { signal } = options;
    if (signal?.aborted === true) return neverSent();
    if (options.check === true) {
      const refusal = await this.#refusal(source, options);
      if (refusal !== undefined) return refusal;
    }
    const connection = await this.#connect();
    if (aborted(signal)) return neverSent();
    const asked = connection.request("evaluate", params, offerOf(options, functions));
    const undo = signal === undefined ? undefined : whenAborted(signal, asked.cancel);
    try {
      return resultOf<T>(await asked.answer);
    } finally {
      undo?.();
    }
  }

  /** What stands in the place of a result when the program does not type-check. */
  async #refusal(source: string, options: EvaluateOptions): Promise<EvaluateResult<never> | undefined> {
    if (options.vm !== undefined) {
      throw new TypeError("evaluate: check does not know the names that earlier programs left in a vm; leave one of the two out");
    }
    const { form, language, hostFunctions } = options;
    const { declarations } = await this.types(hostFunctions);
    const faults = await typeFaults({ source, declarations, form, language });
    return faults.length > 0 ? refused(faults, neverSent()) : undefined;
  }

  async #ask(method: string, params: string): Promise<unknown> {
    const connection = await this.#connect();
    return connection.request(method, params).answer;
  }

  /** The connection, made anew when there is none. */
  async #connect(): Promise<Connection> {
    if (this.#closed) throw new BrigError("closed", "the client was closed; nothing was sent");
    if (this.#connection?.alive === true) return this.#connection;
    this.#opening ??= this.#endpoint.open().finally(() => (this.#opening = undefined));
    const connection = await this.#opening;
    if (this.#closed as boolean) {
      connection.close();
      throw new BrigError("closed", "the client was closed; nothing was sent");
    }
    this.#connection = connection;
    return connection;
  }
}

/** Asked again after something was awaited. */
function aborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** What each signal ends: one listener for all, as Node warns of more than ten on one signal. */
const endedBy = new WeakMap<AbortSignal, Set<() => void>>();

/** Does so when the signal is aborted; gives what undoes that. */
function whenAborted(signal: AbortSignal, act: () => void): () => void {
  const acts = endedBy.get(signal) ?? new Set();
  if (!endedBy.has(signal)) {
    endedBy.set(signal, acts);
    signal.addEventListener("abort", () => acts.forEach((each) => each()), { once: true });
  }
  acts.add(act);
  return () => acts.delete(act);
}

function offerOf(options: EvaluateOptions, { handlers }: PreparedFunctions): Offer | undefined {
  const { onStdout, onStderr, onWarning, onApproval, vm } = options;
  const listens = onStdout !== undefined || onStderr !== undefined || onWarning !== undefined || onApproval !== undefined;
  // A vm may have functions of this client.
  return handlers.size > 0 || listens || vm !== undefined ? { handlers, onStdout, onStderr, onWarning, onApproval } : undefined;
}

/**
 * A client of the brigd that these options name, connected.
 *
 * @throws {BrigError} `connect_failed` or `start_failed`.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const client = new Client(options);
  try {
    await client.initialize();
  } catch (fault) {
    await client.close();
    throw fault;
  }
  return client;
}
