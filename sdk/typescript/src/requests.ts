/**
 * From options to the params of a request.
 *
 * Owns which options there are and how they are spelled on the wire. Never sends.
 */

import { BrigError } from "./errors.js";
import type { PreparedFunctions } from "./functions.js";
import { encode, JsonFault, NESTING_LEVELS } from "./json.js";
import type { CallOptions, CallResult, CheckOptions, DetachOptions, EvaluateOptions, EvaluateResult, EvaluationStatus, VmOptions } from "./types.js";

/** Levels that params add around a value. */
const ENVELOPE_LEVELS = 4;

const EVALUATE = [
  "form",
  "language",
  "inputs",
  "hostFunctions",
  "collections",
  "permissions",
  "timeoutMs",
  "limits",
  "output",
  "signal",
  "onStdout",
  "onStderr",
  "onWarning",
  "onApproval",
  "timeZone",
  "vm",
  "idempotencyKey",
  "check",
  "trace",
];
/** What needs this process is left out: the program may outlive it. */
const DETACH = EVALUATE.filter((name) => !["hostFunctions", "signal", "onStdout", "onStderr", "onWarning", "onApproval", "vm", "check"].includes(name));
const CALL = ["timeoutMs", "idempotencyKey", "signal", "onApproval"];
const CHECK = ["form", "language", "hostFunctions", "types"];
const VM = ["hostFunctions", "limits", "timeZone", "permissions", "timeoutMs", "output"];

/** Params of `evaluate`, as JSON text. */
export function evaluateParams(source: string, options: EvaluateOptions, functions: PreparedFunctions): string {
  refuseUnknown("evaluate", options, EVALUATE);
  const {
    signal: _signal,
    onStdout,
    onStderr,
    onWarning,
    onApproval: _told,
    vm,
    hostFunctions: _declared,
    output,
    check: _checked,
    ...plain
  } = options;
  const listens = onStdout !== undefined || onStderr !== undefined || onWarning !== undefined;
  return text("evaluate", {
    source: sourceOf(source),
    ...plain,
    hostFunctions: declared(functions),
    output: listens ? { ...output, stream: true } : output,
    vm: typeof vm === "object" ? vm.id : vm,
  });
}

/** Params of `evaluate` for a program that goes on without this client, as JSON text. */
export function detachParams(source: string, options: DetachOptions): string {
  refuseUnknown("detach", options, DETACH);
  return text("detach", { source: sourceOf(source), ...options, detach: true });
}

/** Params of `check`, as JSON text. */
export function checkParams(source: string, options: CheckOptions): string {
  refuseUnknown("check", options, CHECK);
  const { form, language } = options;
  return text("check", { source: sourceOf(source), form, language });
}

/** Params of `functions.call`, as JSON text. */
export function callParams(name: string, input: object | undefined, options: CallOptions): string {
  refuseUnknown("call", options, CALL);
  const { timeoutMs, idempotencyKey } = options;
  return text("call", { function: name, input, timeoutMs, idempotencyKey });
}

/** Params of `functions.types`, as JSON text. */
export function typesParams(functions: PreparedFunctions, patterns: readonly string[] | undefined): string {
  return text("types", { functions: patterns, hostFunctions: declared(functions) });
}

/** Params of `vm.create`, as JSON text. */
export function vmParams(options: VmOptions, functions: PreparedFunctions): string {
  refuseUnknown("createVm", options, VM);
  return text("createVm", { hostFunctions: declared(functions), limits: options.limits, timeZone: options.timeZone });
}

/** Params of any method, as JSON text. */
export function text(what: string, params: object): string {
  try {
    return encode(params, NESTING_LEVELS + ENVELOPE_LEVELS);
  } catch (fault) {
    if (fault instanceof JsonFault) throw new TypeError(`${what}: ${fault.message.replace(/^\$\.?/, "")}`, { cause: fault });
    throw fault;
  }
}

function declared(functions: PreparedFunctions): object | undefined {
  return functions.handlers.size === 0 ? undefined : functions.declarations;
}

function sourceOf(source: unknown): string {
  if (typeof source === "string") return source;
  throw new TypeError(`source must be a string; it is ${source === null ? "null" : typeof source}`);
}

function refuseUnknown(what: string, options: object, known: readonly string[]): void {
  const odd = Object.keys(options).find((name) => !known.includes(name));
  if (odd !== undefined) throw new TypeError(`${what} has no option "${odd}"; there are ${known.join(", ")}`);
}

/** The result of an evaluation that was cancelled before it was sent. */
export function neverSent(): EvaluateResult<never> {
  return {
    evaluation: "",
    outcome: "cancelled",
    error: { code: "cancelled", name: "Cancelled", message: "the signal was aborted before the program was sent; nothing ran", retryable: true },
    stdout: "",
    stderr: "",
    stdoutTruncated: false,
    stderrTruncated: false,
    warnings: [],
    calls: [],
    usage: { wallMs: 0, cpuMs: 0, hostMs: 0, approvalMs: 0, peakMemoryBytes: 0, hostCalls: 0 },
    sandbox: { level: "none", layers: [] },
  };
}

/** The answer to `evaluate`, if it is one. */
export function resultOf<T>(answer: unknown): EvaluateResult<T> {
  const outcome = (answer as { outcome?: unknown } | null | undefined)?.outcome;
  if (typeof outcome === "string") return answer as EvaluateResult<T>;
  throw new BrigError("protocol_error", "the answer to evaluate has no outcome", { nothingRan: false });
}

/** How a call ended, if that is what was answered. */
export function callResultOf<T>(answer: unknown): CallResult<T> {
  const call = (answer as { call?: unknown } | null | undefined)?.call;
  if (typeof call === "object" && call !== null) return answer as CallResult<T>;
  throw new BrigError("protocol_error", "the answer to functions.call has no call", { nothingRan: false });
}

/** How far an evaluation is, if that is what was answered. */
export function statusOf<T>(answer: unknown): EvaluationStatus<T> {
  const state = (answer as { state?: unknown } | null | undefined)?.state;
  if (typeof state === "string") return answer as EvaluationStatus<T>;
  throw new BrigError("protocol_error", "the answer does not say how far the evaluation is", { nothingRan: false });
}
