/** Whether what came is what a behaviour of tests/contract expects. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { BrigError, type EvaluateResult } from "brig";
import type { Told } from "./scripted.js";

type Expected = { readonly [member: string]: any };

/** What an evaluation ended with, and what the runner saw of it. */
export interface Ran {
  readonly result: EvaluateResult;
  readonly told: Told;
  /** Ids of the evaluations of the steps so far, by index. */
  readonly ids: readonly (string | undefined)[];
}

/** Fails unless `actual` has these members, and what is below them. */
export function has(actual: unknown, wanted: unknown, where: string): void {
  if (Array.isArray(wanted)) {
    assert.ok(Array.isArray(actual) && actual.length === wanted.length, `${where} is ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`);
    wanted.forEach((one, index) => has((actual as unknown[])[index], one, `${where}[${index}]`));
  } else if (typeof wanted === "object" && wanted !== null) {
    for (const [name, one] of Object.entries(wanted)) has((actual as Expected | undefined)?.[name], one, `${where}.${name}`);
  } else {
    assert.deepEqual(actual, wanted, where);
  }
}

/** Fails unless each part is in the text. */
function contains(text: string, parts: readonly string[]): void {
  for (const part of parts) assert.ok(text.includes(part), `"${part}" is not in ${text}`);
}

/** `isDeepStrictEqual` takes an own `__proto__` for what it is; parsed JSON has one. */
function equal(actual: unknown, wanted: unknown, where: string): void {
  const plain: unknown = JSON.parse(JSON.stringify({ actual }));
  assert.ok(isDeepStrictEqual((plain as Expected)["actual"], wanted), `${where} is ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`);
}

const OF_RESULT: { readonly [member: string]: (ran: Ran, wanted: any) => void | Promise<void> } = {
  outcome: ({ result }, wanted) => assert.equal(result.outcome, wanted, JSON.stringify(result)),
  value: ({ result }, wanted) => {
    assert.ok("value" in result, JSON.stringify(result));
    equal(result.value, wanted, "value");
  },
  noValue: ({ result }) => assert.equal("value" in result, false, JSON.stringify(result)),
  length: ({ result }, wanted) => assert.equal((result.value as string | undefined)?.length, wanted),
  error: ({ result }, wanted) => has(result.error, wanted, "error"),
  errorText: ({ result }, wanted) => contains(JSON.stringify(result.error), wanted),
  calls: ({ result }, wanted) => has(result.calls, wanted, "calls"),
  stdout: ({ result }, wanted) => assert.equal(result.stdout, wanted),
  stderr: ({ result }, wanted) => assert.equal(result.stderr, wanted),
  stdoutTruncated: ({ result }, wanted) => assert.equal(result.stdoutTruncated, wanted),
  stderrTruncated: ({ result }, wanted) => assert.equal(result.stderrTruncated, wanted),
  // How near a limit of time is depends on the machine.
  warnings: ({ result }, wanted) => assert.deepEqual(result.warnings.map(({ code }) => code).filter((code) => code !== "limit_near"), wanted),
  layers: ({ result }, wanted: string[]) => assert.ok(wanted.every((layer) => result.sandbox.layers.includes(layer)), JSON.stringify(result.sandbox)),
  usage: ({ result }, wanted) => has(result.usage, wanted, "usage"),
  sameAs: ({ result, ids }, wanted: number) => assert.equal(result.evaluation, ids[wanted]),
  told: ({ told }, wanted: Expected) => {
    for (const [name, one] of Object.entries(wanted)) assert.deepEqual(told[name as "stdout" | "stderr" | "warnings"], one, `told ${name}`);
  },
  ran: ({ told }, wanted: { [name: string]: number }) => {
    for (const [name, count] of Object.entries(wanted)) assert.equal(told.seen.get(name)?.length ?? 0, count, `runs of ${name}`);
  },
  saw: ({ told }, wanted: Expected) => {
    for (const [name, inputs] of Object.entries(wanted)) equal(told.seen.get(name), inputs, `inputs of ${name}`);
  },
  over: async ({ told }, wanted: string[]) => {
    for (const name of wanted) await told.isOver(name);
  },
};

/** Fails unless the evaluation went as expected, or when nobody knows how to look. */
export async function holds(ran: Ran, expected: Expected): Promise<void> {
  for (const [member, wanted] of Object.entries(expected)) {
    const look = OF_RESULT[member];
    assert.ok(look !== undefined, `the expectation "${member}" has no implementation here`);
    await look(ran, wanted);
  }
}

const OF_REFUSAL: { readonly [member: string]: (fault: BrigError, wanted: any) => void } = {
  code: (fault, wanted) => assert.equal(fault.code, wanted),
  limit: (fault, wanted) => assert.equal(fault.limit, wanted),
  setting: (fault, wanted) => assert.equal(fault.setting, wanted),
  retryable: (fault, wanted) => assert.equal(fault.retryable, wanted),
  nothingRan: (fault, wanted) => assert.equal(fault.nothingRan, wanted),
  message: (fault, wanted) => contains(`${fault.message} ${fault.hint ?? ""}`, wanted),
};

/** Fails unless this is rejected as expected. */
export async function isRefused(asked: Promise<unknown>, expected: Expected): Promise<void> {
  const fault: unknown = await asked.then(
    (answer) => assert.fail(`it was not refused: ${JSON.stringify(answer)}`),
    (fault: unknown) => fault,
  );
  if (!(fault instanceof BrigError)) throw fault;
  for (const [member, wanted] of Object.entries(expected)) {
    const look = OF_REFUSAL[member];
    assert.ok(look !== undefined, `the expectation "refused.${member}" has no implementation here`);
    look(fault, wanted);
  }
}
