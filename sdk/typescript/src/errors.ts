/**
 * Everything that is thrown.
 *
 * Owns the error classes. A program that ran and failed is none of these: that is a
 * result with an `error` in it.
 */

/** What a `BrigError` says beside its sentence. */
export interface BrigErrorDetails {
  /** Whether the same request may succeed when sent again. */
  readonly retryable?: boolean | undefined;
  /** When to try again, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** What to do instead. */
  readonly hint?: string | undefined;
  /** The limit that was hit. */
  readonly limit?: string | undefined;
  /** The setting of brigd that raises it. */
  readonly setting?: string | undefined;
  /** `false` only when the request was under way and nobody can say what it did. */
  readonly nothingRan?: boolean | undefined;
  readonly cause?: unknown;
}

/**
 * There is no result. `code` is one of the protocol's request codes (`invalid_params`,
 * `overloaded`, …: brigd refused, nothing ran), or one of the client's own:
 *
 * - `connect_failed`: nothing answers on the socket; nothing was sent.
 * - `start_failed`: no private brigd could be started; nothing was sent.
 * - `connection_lost`: it ended before the answer came; see `nothingRan`.
 * - `protocol_error`: what came is not the protocol.
 * - `typescript_missing`: a type check was asked for, and there is no compiler.
 * - `closed`: the client was closed.
 */
export class BrigError extends Error {
  override readonly name = "BrigError";
  /** Which error. */
  readonly code: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly hint: string | undefined;
  readonly limit: string | undefined;
  readonly setting: string | undefined;
  /** Whether it is certain that nothing ran. */
  readonly nothingRan: boolean;

  constructor(code: string, message: string, details: BrigErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs;
    this.hint = details.hint;
    this.limit = details.limit;
    this.setting = details.setting;
    this.nothingRan = details.nothingRan ?? true;
  }

  /** From the `error` member of an answer. */
  static fromWire(error: unknown): BrigError {
    const { message, data } = (error ?? {}) as { message?: unknown; data?: unknown };
    const said = (typeof data === "object" && data !== null ? data : {}) as Record<string, unknown>;
    const text = typeof message === "string" ? message : "brigd refused the request and gave no reason";
    return new BrigError(textOf(said["code"]) ?? "internal", text, {
      retryable: said["retryable"] === true,
      retryAfterMs: typeof said["retryAfterMs"] === "number" ? said["retryAfterMs"] : undefined,
      hint: textOf(said["hint"]),
      limit: textOf(said["limit"]),
      setting: textOf(said["setting"]),
    });
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A schema says something that JSON Schema can not carry. Nothing was sent. */
export class SchemaConversionError extends TypeError {
  override readonly name = "SchemaConversionError";
  /** `orders.list inputSchema`, once it is known whose schema it is. */
  readonly schema: string | undefined;

  constructor(
    /** Where in the schema, as `$.items[].when`. */
    readonly path: string,
    /** The kind of schema there, as `date`. */
    readonly kind: string,
    /** Why not, and what would do. */
    readonly reason: string,
    schema?: string,
  ) {
    super(`${schema === undefined ? "" : `${schema}: `}${path} (${kind}): ${reason}`);
    this.schema = schema;
  }

  /** The same, saying whose schema it is. */
  of(schema: string): SchemaConversionError {
    return new SchemaConversionError(this.path, this.kind, this.reason, schema);
  }
}

/**
 * An error for handlers to throw: the program gets its name, message, `code` and `data`.
 * Any other error does as well; a stack never crosses.
 */
export class HostFunctionError extends Error {
  override readonly name: string = "HostFunctionError";
  constructor(
    message: string,
    /** The function's own code, for the program to look at. */
    readonly code?: string,
    /** Anything that JSON can carry. */
    readonly data?: unknown,
  ) {
    super(message);
  }
}
