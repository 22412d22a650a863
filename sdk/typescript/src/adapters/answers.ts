/**
 * The answer of a tool that runs programs, as a model needs it.
 *
 * Owns its shape. Never runs anything.
 */

import type { JsonValue } from "../json.js";
import type { CallRecord, EvaluateResult, EvaluationError, Outcome } from "../types.js";

/** What a model needs of a result; what is empty is left out. */
export interface ToolAnswer {
  readonly outcome: Outcome;
  readonly value?: JsonValue;
  readonly error?: Pick<EvaluationError, "code" | "name" | "message" | "line" | "excerpt" | "hint">;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly warnings?: string[];
  /** What was done, when that is not for the value to say. */
  readonly calls?: Pick<CallRecord, "function" | "state" | "code">[];
}

/** The answer that a result is. */
export function answerOf(result: EvaluateResult): ToolAnswer {
  const { outcome, error, stdout, stderr, warnings, calls } = result;
  return {
    outcome,
    ...("value" in result && result.value !== undefined ? { value: result.value } : {}),
    ...(error === undefined ? {} : { error: told(error) }),
    ...(stdout === "" ? {} : { stdout }),
    ...(stderr === "" ? {} : { stderr }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(({ message }) => message) }),
    ...(outcome === "succeeded" || calls.length === 0 ? {} : { calls: calls.map(callOf) }),
  };
}

/** Without the stack, and without limits that a model can not raise. */
function told({ code, name, message, line, excerpt, hint }: EvaluationError): NonNullable<ToolAnswer["error"]> {
  return {
    code,
    name,
    message,
    ...(line === undefined ? {} : { line }),
    ...(excerpt === undefined ? {} : { excerpt }),
    ...(hint === undefined ? {} : { hint }),
  };
}

function callOf({ function: name, state, code }: CallRecord): NonNullable<ToolAnswer["calls"]>[number] {
  return { function: name, state, ...(code === undefined ? {} : { code }) };
}
