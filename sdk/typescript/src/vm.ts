/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Kept workers.
 *
 * Owns what holds for each evaluation of a vm unless it says otherwise. Never keeps a vm
 * alive: brigd ends it when it is idle.
 */

import type { JsonValue } from "./json.js";
import type { EvaluateOptions, EvaluateResult, VmOptions } from "./types.js";

/** Who runs programs in a vm. */
export interface VmHost {
  run<T>(source: string, options: EvaluateOptions): Promise<EvaluateResult<T>>;
  request(method: string, params?: object): Promise<JsonValue>;
}

type Defaults = Pick<VmOptions, "permissions" | "timeoutMs" | "output">;

/** A worker that keeps its realm: `let`, `const` and functions stay. One evaluation at a time. */
export class Vm {
  /** Its id, `vm_…`. */
  readonly id: string;
  /** Ends when idle for so long, in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Ends after so long in any case, in milliseconds. */
  readonly lifetimeMs: number;
  readonly #host: VmHost;
  readonly #defaults: Defaults;

  /** @internal Made by `createVm`. */
  constructor(
    host: VmHost,
    made: { vm: string; idleTimeoutMs: number; lifetimeMs: number },
    defaults: Defaults,
  ) {
    this.#host = host;
    this.#defaults = defaults;
    this.id = made.vm;
    this.idleTimeoutMs = made.idleTimeoutMs;
    this.lifetimeMs = made.lifetimeMs;
  }

  /** Runs a program in the vm's realm. */
  async evaluate<T = JsonValue, const Schemas = any>(
    source: string,
    options: Omit<EvaluateOptions<Schemas>, "vm"> = {},
  ): Promise<EvaluateResult<T>> {
    return this.#host.run<T>(source, { ...this.#defaults, ...(options as EvaluateOptions), vm: this.id });
  }

  /** Ends it. */
  async dispose(): Promise<void> {
    await this.#host.request("vm.dispose", { vm: this.id });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }
}
