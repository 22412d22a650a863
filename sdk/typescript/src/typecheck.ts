/**
 * Type checks with the user's own TypeScript compiler.
 *
 * Owns finding the compiler and wording what it found. The compiler is never part of
 * this package and never of brigd: see docs/decisions/010-type-checks.md.
 */

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { typeCheck } from "./checker.js";
import { BrigError } from "./errors.js";
import type { EvaluateResult, EvaluationError, TypeFault } from "./types.js";

/** What is checked, and against what. */
export interface Checked {
  readonly source: string;
  readonly declarations: string;
  readonly form?: string | undefined;
  readonly language?: string | undefined;
}

/**
 * The type errors of a program.
 *
 * @throws {BrigError} `typescript_missing` without a compiler.
 */
export async function typeFaults(program: Checked): Promise<TypeFault[]> {
  return typeCheck(await compiler(), program);
}

/** The package `typescript` that this package sees, or that of the working directory. */
async function compiler(): Promise<object> {
  try {
    const found = (await import("typescript")) as { default?: object };
    return found.default ?? found;
  } catch {
    try {
      const path = createRequire(join(process.cwd(), "package.json")).resolve("typescript");
      const found = (await import(pathToFileURL(path).href)) as { default?: object };
      return found.default ?? found;
    } catch (cause) {
      throw new BrigError(
        "typescript_missing",
        'type checks need the package "typescript" (version 5 or 6) of your project, which was not found; npm install --save-dev typescript. Nothing ran',
        { nothingRan: true, cause },
      );
    }
  }
}

/** The result of an evaluation whose program does not type-check: nothing was sent to run. */
export function refused(faults: readonly TypeFault[], ended: EvaluateResult<never>): EvaluateResult<never> {
  const [first, ...more] = faults;
  const error: EvaluationError = {
    code: "type_error_check",
    name: first?.name ?? "TypeError",
    message: `${first?.message ?? "the program does not type-check"}${more.length > 0 ? ` (and ${more.length} more)` : ""}; nothing ran`,
    retryable: false,
    ...(first === undefined ? {} : { line: first.line, column: first.column, excerpt: first.excerpt }),
    errors: faults.map(({ name, message, line, column }) => ({ name, message: `line ${line}, column ${column}: ${message}` })),
    hint: "correct the program, or leave out check to run it as it is",
  };
  return { ...ended, outcome: "failed", error };
}
