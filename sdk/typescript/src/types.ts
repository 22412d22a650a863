/**
 * What callers pass and get.
 *
 * Owns types only. Names, units and meanings are those of the protocol.
 */

import type { HostFunctions } from "./functions.js";
import type { JsonValue } from "./json.js";
import type { Vm } from "./vm.js";

/** How the program text is to be read. */
export type Form = "auto" | "expression" | "body" | "module";

/** In which language the program is; `auto` strips types when there are any. */
export type Language = "auto" | "javascript" | "typescript";

/** One rule of a scope. */
export interface PermissionRule {
  readonly mode: "allow" | "deny" | "ask";
  /** Both when left out. */
  readonly operations?: readonly ("invoke" | "list")[];
  /** `collection.function`; `*` within a segment, `**` across. */
  readonly patterns: readonly string[];
  /** JSON Schema on the input: the rule holds only where it is valid. */
  readonly when?: unknown;
  /** A sentence that refusals show. */
  readonly why?: string;
}

/** A scope: one answer, or rules of which the last that matches wins. */
export type PermissionScope =
  | "allow"
  | "deny"
  | {
      /** When no rule matches; `deny` when left out. */
      readonly default?: "allow" | "deny";
      readonly rules: readonly PermissionRule[];
    };

/** Narrows what policy grants; never widens it. */
export interface Permissions {
  readonly hostFunction?: PermissionScope;
}

/** Lowers the ceilings of brigd; can not raise one. */
export interface Limits {
  /** Wall-clock time, approvals excepted, in milliseconds. */
  readonly timeoutMs?: number;
  /** CPU time of the worker, in milliseconds. */
  readonly cpuMs?: number;
  readonly heapBytes?: number;
  readonly hostCalls?: number;
  readonly hostCallsInFlight?: number;
  /** JSON text of the value. */
  readonly resultBytes?: number;
  /** Console text of each stream. */
  readonly consoleBytes?: number;
  /** JSON text of one host call's input. */
  readonly inputBytes?: number;
  /** JSON text of one host call's output. */
  readonly outputBytes?: number;
  /** How long issued host calls may go on once the value is ready. */
  readonly drainMs?: number;
  /** Time for one host call, in milliseconds. */
  readonly functionTimeoutMs?: number;
}

/** What happens to console output. */
export interface OutputOptions {
  /** What the result carries; `all` when left out. */
  readonly capture?: "none" | "stderr" | "all";
  /** Whether it is also told while it runs; set by `onStdout`, `onStderr`, `onWarning`. */
  readonly stream?: boolean;
}

/** Which brigd. */
export interface ConnectOptions {
  /**
   * Path of its socket. Left out: `BRIG_SOCKET`, then the service's
   * `/run/brig/brig.sock` when it answers, then a private brigd of this process.
   */
  readonly socket?: string | undefined;
  /** Binary of a private brigd: else `BRIGD`, else the first `brigd` on `PATH`. */
  readonly brigd?: string | undefined;
}

/** What a program gets, and what becomes of it. */
export interface EvaluateOptions<Schemas = any> {
  readonly form?: Form | undefined;
  readonly language?: Language | undefined;
  /** The frozen global `inputs`. */
  readonly inputs?: object | undefined;
  readonly hostFunctions?: HostFunctions<Schemas> | undefined;
  /** Narrows the configured collections to these. */
  readonly collections?: readonly string[] | undefined;
  readonly permissions?: Permissions | undefined;
  /** Wall-clock limit in milliseconds; the same as `limits.timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  readonly limits?: Limits | undefined;
  readonly output?: OutputOptions | undefined;
  /** Cancels the evaluation: the outcome is `cancelled`. */
  readonly signal?: AbortSignal | undefined;
  /** One or more lines, as they are printed. */
  readonly onStdout?: ((text: string) => void) | undefined;
  readonly onStderr?: ((text: string) => void) | undefined;
  readonly onWarning?: ((warning: Warning) => void) | undefined;
  /** Is told of each host call that waits for a person. */
  readonly onApproval?: ((note: ApprovalNote) => void) | undefined;
  /** IANA time zone of the program; `UTC` when left out. */
  readonly timeZone?: string | undefined;
  /** A kept worker: see `createVm`. */
  readonly vm?: Vm | string | undefined;
  /** Same key, same request: the same answer, nothing run twice. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Type-checks first, with the `typescript` of your project; a program with type errors
   * does not run: `error.code` is `type_error_check`.
   */
  readonly check?: boolean | undefined;
  /** W3C `traceparent`. */
  readonly trace?: string | undefined;
}

/** What `check` reads. */
export interface CheckOptions<Schemas = any> {
  readonly form?: Form | undefined;
  readonly language?: Language | undefined;
  /** With these (and the configured ones) types are checked too, with the `typescript` of your project. */
  readonly hostFunctions?: HostFunctions<Schemas> | undefined;
  /** Whether types are checked; by itself against the configured functions. */
  readonly types?: boolean | undefined;
}

/** One type error. */
export interface TypeFault extends EvaluationError {
  readonly code: "type_error_check";
  /** Number of the compiler's message, as `TS2339`. */
  readonly name: string;
  readonly line: number;
  readonly column: number;
  readonly excerpt: string;
}

/** What a vm is made with. */
export interface VmOptions<Schemas = any> {
  /** Collections for every evaluation in the vm. */
  readonly hostFunctions?: HostFunctions<Schemas> | undefined;
  readonly limits?: Limits | undefined;
  readonly timeZone?: string | undefined;
  /** Unless an evaluation says otherwise. */
  readonly permissions?: Permissions | undefined;
  /** Unless an evaluation says otherwise, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** Unless an evaluation says otherwise. */
  readonly output?: OutputOptions | undefined;
}

/** How an evaluation ended. */
export type Outcome = "succeeded" | "failed" | "timed_out" | "cancelled";

/** What the caller would otherwise lose. */
export interface Warning {
  readonly code: string;
  readonly message: string;
  /** Where in a value, as `$.a[0].b`. */
  readonly path?: string;
}

/** A host call waits for a person, and with it the evaluation's wall clock. */
export interface ApprovalNote {
  readonly evaluation: string;
  /** Its number within the evaluation. */
  readonly call: number;
  /** `collection.function`. */
  readonly function: string;
  /** The id by which an approver finds it, `ap_…`. */
  readonly approval: string;
  /** How long it is awaited. */
  readonly expiresInMs: number;
}

/** One host call. */
export interface CallRecord {
  /** Its number within the evaluation, from 1. */
  readonly call: number;
  /** `collection.function`. */
  readonly function: string;
  /** `refused`: did not run; `unknown`: was started, and nobody can say. */
  readonly state: "refused" | "failed" | "completed" | "unknown";
  /** Why not completed. */
  readonly code?: string;
  readonly durationMs: number;
  readonly inputBytes: number;
  readonly outputBytes: number;
}

/** One error below another. */
export interface ErrorCause {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly data?: JsonValue;
  readonly cause?: ErrorCause;
}

/** Why an evaluation did not succeed. */
export interface EvaluationError {
  /** From the protocol's closed table; never from the program. */
  readonly code: string;
  readonly name: string;
  readonly message: string;
  /** Whether the same program may succeed when sent again unchanged. */
  readonly retryable: boolean;
  readonly stack?: string;
  /** 1-based, in the text as sent. */
  readonly line?: number;
  readonly column?: number;
  /** The line, and a caret under the column. */
  readonly excerpt?: string;
  readonly cause?: ErrorCause;
  readonly errors?: ErrorCause[];
  readonly data?: JsonValue;
  /** What to do instead. */
  readonly hint?: string;
  readonly limit?: string;
  readonly limitValue?: number;
  /** The setting of brigd that raises the limit. */
  readonly setting?: string;
}

/** What a call without a program is given. */
export interface CallOptions {
  /** Ends it after so long, if the function's own time is not over before, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** Same key, same call: the same answer, nothing run twice. */
  readonly idempotencyKey?: string | undefined;
  /** Cancels the call; the answer still says whether it ran. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Is told when the call waits for a person: also when another call of the same function
   * on this client does. The function has to be named as `collection.function`.
   */
  readonly onApproval?: ((note: ApprovalNote) => void) | undefined;
}

/** Why a call gave no value. */
export interface CallError {
  /** From the protocol's closed table; never from the function. */
  readonly code: string;
  readonly message: string;
  /** What the function's program said of its own failure. */
  readonly name?: string;
  readonly functionCode?: string;
  readonly data?: JsonValue;
}

/** How a call without a program ended: `call.state` says whether it ran. */
export type CallResult<T = JsonValue> =
  | { readonly call: CallRecord; readonly value: T; readonly error?: undefined }
  | { readonly call: CallRecord; readonly value?: undefined; readonly error: CallError };

interface Ended {
  /** Its id, `ev_…`; empty when it was cancelled before it was sent. */
  readonly evaluation: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutTruncated: boolean;
  readonly stderrTruncated: boolean;
  readonly warnings: Warning[];
  /** Every host call, in order. */
  readonly calls: CallRecord[];
  readonly usage: {
    readonly wallMs: number;
    readonly cpuMs: number;
    readonly hostMs: number;
    readonly approvalMs: number;
    readonly peakMemoryBytes: number;
    readonly hostCalls: number;
  };
  /** The layers that confined its worker. */
  readonly sandbox: { readonly level: string; readonly layers: string[] };
}

/** The program gave a value. */
export interface Succeeded<T> extends Ended {
  readonly outcome: "succeeded";
  /** Absent when the program gave `undefined`. */
  readonly value: T;
  readonly error?: undefined;
}

/** It did not: see `error.code`. */
export interface Unsuccessful extends Ended {
  readonly outcome: "failed" | "timed_out" | "cancelled";
  readonly value?: undefined;
  readonly error: EvaluationError;
}

/** How a program ended; `outcome` tells which of the two. */
export type EvaluateResult<T = JsonValue> = Succeeded<T> | Unsuccessful;

/** What a detached program gets: nothing of this process, which it may outlive. */
export type DetachOptions = Omit<EvaluateOptions, "hostFunctions" | "signal" | "onStdout" | "onStderr" | "onWarning" | "onApproval" | "vm" | "check">;

interface Status {
  /** Its id, `ev_…`. */
  readonly evaluation: string;
  /** When it began, in milliseconds since 1970. */
  readonly startedMs: number;
}

/**
 * How far an evaluation is. `unknown`: brigd ended before it did; `result` lists the write
 * calls that are on record, and it is never run again.
 */
export type EvaluationStatus<T = JsonValue> =
  | (Status & { readonly state: "running"; readonly endedMs?: undefined; readonly result?: undefined })
  | (Status & { readonly state: "ended" | "unknown"; readonly endedMs: number; readonly result: EvaluateResult<T> });

/** Whether a program parses, and type-checks where that was asked for. */
export type CheckResult =
  | { readonly ok: true; readonly error?: undefined; readonly errors?: undefined }
  | {
      readonly ok: false;
      /** The first of them. */
      readonly error: EvaluationError;
      /** All of them: one syntax error, or the type errors in order. */
      readonly errors: readonly EvaluationError[];
    };

/** Functions as a model reads them. */
export interface FunctionTypes {
  /** TypeScript declarations. */
  readonly declarations: string;
  /** The one tool over them; the declarations are in its description. */
  readonly tool: { readonly name: string; readonly description: string };
}

/** What brigd says of itself and of this client. */
export interface ServerInfo {
  readonly protocolVersion: string;
  readonly server: { readonly name: string; readonly version: string };
  /** The ceilings of this principal. */
  readonly limits: { readonly [Name in keyof Limits]-?: number };
  readonly sandbox: { readonly level: string; readonly layers: string[] };
  /** Who the kernel says this process is. */
  readonly principal: { readonly uid: number; readonly gid: number };
}

/** One kept worker, as `listVms` tells it. */
export interface VmInfo {
  readonly vm: string;
  readonly [fact: string]: JsonValue;
}
