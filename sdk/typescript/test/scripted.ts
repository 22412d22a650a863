/** Host functions that answer as a behaviour of tests/contract scripts them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { HostCall, HostFunctions } from "brig";

/** How long anything may take that happens by itself, in milliseconds. */
export const PATIENCE_MS = 30_000;

export type Script = { readonly [name: string]: { readonly answers: readonly Answer[]; readonly [member: string]: any } };
type Answer = { readonly [kind: string]: any };

/** What one evaluation told its client. */
export class Told {
  stdout = "";
  stderr = "";
  readonly warnings: string[] = [];
  /** The inputs of each handler, by its name. */
  readonly seen = new Map<string, unknown[]>();
  readonly cancel = new AbortController();
  readonly #over = new Map<string, Promise<unknown>[]>();
  readonly #meeting = new Map<string, (() => void)[]>();

  /** Fails unless a handler of this name is told that its call is over. */
  async isOver(name: string): Promise<void> {
    const calls = this.#over.get(name);
    assert.ok(calls !== undefined, `${name} never waited`);
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error(`${name} was not told that its call is over`)), PATIENCE_MS).unref());
    await Promise.race([Promise.all(calls), late]);
  }

  /** Waits until the call is over. */
  async waits(name: string, { signal }: HostCall): Promise<never> {
    const over = signal.aborted ? Promise.resolve() : once(signal, "abort");
    this.#over.set(name, [...(this.#over.get(name) ?? []), over]);
    await over;
    throw new Error("nobody awaits this");
  }

  /** Waits until so many calls wait here. */
  meets(name: string, count: number): Promise<void> {
    const waiting = this.#meeting.get(name) ?? [];
    this.#meeting.set(name, waiting);
    return new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === count) for (const go of waiting.splice(0)) go();
    });
  }
}

const ANSWERS: { readonly [kind: string]: (told: Told, wanted: any, name: string, input: unknown, call: HostCall) => unknown } = {
  value: (_told, value: unknown) => value,
  echo: (_told, _wanted, _name, input) => input,
  repeat: (_told, [text, count]: [string, number]) => text.repeat(count),
  error: (_told, { message, ...more }: { message: string }) => {
    throw Object.assign(new Error(message), more);
  },
  crash: () => (undefined as unknown as { a: string }).a,
  facts: (_told, _wanted, _name, _input, { call, evaluation, idempotencyKey, deadline }) => ({
    call,
    keyed: idempotencyKey === `${evaluation}:${call}`,
    due: deadline.getTime() > Date.now(),
  }),
  meet: async (told, count: number, name) => {
    await told.meets(name, count);
    return count;
  },
  never: (told, _wanted, name, _input, call) => told.waits(name, call),
  cancel: (told, _wanted, name, _input, call) => {
    told.cancel.abort();
    return told.waits(name, call);
  },
};

/** The functions of a script. What happens in them is written to `told`. */
export function functionsOf(script: Script, told: Told): HostFunctions {
  const collections: { [collection: string]: { [name: string]: object } } = {};
  for (const [full, { answers, ...declaration }] of Object.entries(script)) {
    isKnown(full, answers);
    const [collection = "", name = ""] = full.split(".", 2);
    const execute = (input: unknown, call: HostCall): unknown => {
      const seen = told.seen.get(full) ?? [];
      told.seen.set(full, [...seen, input]);
      const answer = answers[Math.min(seen.length, answers.length - 1)] ?? {};
      const [[kind = "", wanted] = []] = Object.entries(answer);
      return ANSWERS[kind]?.(told, wanted, full, input, call);
    };
    (collections[collection] ??= {})[name] = { ...declaration, execute };
  }
  return collections as unknown as HostFunctions;
}

/** Fails on answers that nobody knows how to give. */
function isKnown(name: string, answers: readonly Answer[]): void {
  for (const kind of answers.flatMap((answer) => Object.keys(answer))) {
    assert.ok(kind in ANSWERS, `${name}: the answer "${kind}" has no implementation here`);
  }
}
