/**
 * Host functions: what a caller declares, what brigd is told of it, and one call of one.
 *
 * Owns the types of declarations, their conversion, and what crosses of an error: name,
 * message, code and data, never a stack. Never sees a socket.
 */

import { HostFunctionError, SchemaConversionError } from "./errors.js";
import { encode, JsonFault } from "./json.js";
import type { AcceptedBy, JsonSchema, ParsedBy, SchemaLike } from "./schema/infer.js";
import { type Issue, type PreparedSchema, prepareSchema } from "./schema/index.js";
import type { Side } from "./schema/walk.js";

/** What a handler is told of the call it answers. */
export interface HostCall {
  /** Aborted when nobody awaits the answer any more. */
  readonly signal: AbortSignal;
  /** Until when the answer is awaited. */
  readonly deadline: Date;
  /** The evaluation, `ev_…`. */
  readonly evaluation: string;
  /** Number of the call within it, from 1. */
  readonly call: number;
  /** The same for every delivery of this call: pass it on to whoever keeps such keys. */
  readonly idempotencyKey: string;
}

/** One example of a call, for the model. */
export interface Example {
  readonly description?: string;
  readonly input: unknown;
  readonly output?: unknown;
}

/** One host function, with `Input` the type of its input schema. */
export interface HostFunction<Input = unknown, Output = unknown> {
  /** For the model; what `.describe()` says on the input schema when left out. */
  readonly description?: string;
  /** What the program must pass: Zod 3 or 4, Standard Schema, or JSON Schema. */
  readonly inputSchema?: Input;
  /** What comes back. Zod and Standard Schemas also drop what they do not name. */
  readonly outputSchema?: Output;
  /** Runs here, with your credentials; gets what `inputSchema` made of the input. */
  readonly execute: (input: ParsedBy<Input>, call: HostCall) => AcceptedBy<Output> | Promise<AcceptedBy<Output>>;
  readonly examples?: readonly Example[];
  /** Time for one call, in milliseconds. */
  readonly timeoutMs?: number;
  /** The same as `timeoutMs`. */
  readonly timeout?: number;
  /** What it does to the world; `write` when left out. */
  readonly effect?: "read" | "write";
}

/**
 * Collections by name, functions by name. `Schemas` has the shape of the record with the
 * input schema in each place, and is inferred.
 */
export type HostFunctions<Schemas = any> = {
  readonly [C in keyof Schemas]: { readonly [F in keyof Schemas[C]]: HostFunction<Schemas[C][F], any> };
};

/** Infers one function's types from its own schemas, wherever it is written. */
export function hostFunction<const Input extends SchemaLike, const Output extends SchemaLike = JsonSchema>(
  definition: HostFunction<Input, Output>,
): HostFunction<Input, Output> {
  return definition;
}

/** The declaration of one function, as brigd is told. */
interface Declaration {
  description?: string;
  inputSchema?: JsonSchema;
  outputSchema?: JsonSchema;
  examples?: readonly Example[];
  timeoutMs?: number;
  effect?: "read" | "write";
}

/** How a call ended: JSON text of the output, or what crosses of the error. */
export type CallOutcome = { readonly output: string } | { readonly failure: Failure };

/** The `error` member of an answer to `host.call`. */
export interface Failure {
  readonly code: -32000;
  readonly message: string;
  readonly data: { name?: string; code?: string; data?: unknown };
}

/** Runs one call. Never rejects. */
export type Handler = (input: unknown, call: HostCall) => Promise<CallOutcome>;

/** Host functions, ready to be declared and called. */
export interface PreparedFunctions {
  readonly declarations: { [collection: string]: { [name: string]: Declaration } };
  /** By `collection.function`. */
  readonly handlers: Map<string, Handler>;
}

const MEMBERS = ["description", "inputSchema", "outputSchema", "execute", "examples", "timeoutMs", "timeout", "effect"];

/**
 * Converts all schemas.
 *
 * @throws {SchemaConversionError} naming function and path.
 * @throws {TypeError} when the record is not one of collections of functions.
 */
export function prepareFunctions(functions: HostFunctions | undefined): PreparedFunctions {
  const prepared: PreparedFunctions = { declarations: emptyRecord(), handlers: new Map() };
  for (const [collection, members] of entries(functions ?? {}, "hostFunctions")) {
    const declared = (prepared.declarations[collection] = emptyRecord<Declaration>());
    for (const [name, definition] of entries(members, `hostFunctions.${collection}`)) {
      const full = `${collection}.${name}`;
      const { declaration, handler } = prepareFunction(full, definition as HostFunction);
      declared[name] = declaration;
      prepared.handlers.set(full, handler);
    }
  }
  return prepared;
}

/** A record in which `__proto__` is a name like any other. */
function emptyRecord<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}

function entries(value: unknown, what: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError(`${what} must be an object`);
  return Object.entries(value);
}

function prepareFunction(name: string, definition: HostFunction): { declaration: Declaration; handler: Handler } {
  const own = entries(definition, `host function ${name}`);
  const odd = own.find(([member]) => !MEMBERS.includes(member));
  if (odd !== undefined) throw new TypeError(`host function ${name} has an unknown member "${odd[0]}"; there are ${MEMBERS.join(", ")}`);
  if (typeof definition.execute !== "function") throw new TypeError(`host function ${name} must have a function "execute"`);
  const input = schemaOf(name, definition.inputSchema, "input");
  const output = schemaOf(name, definition.outputSchema, "output");
  const declaration: Declaration = {};
  const description = definition.description ?? input?.description;
  const timeoutMs = definition.timeoutMs ?? definition.timeout;
  if (description !== undefined) declaration.description = description;
  if (input !== undefined) declaration.inputSchema = input.json;
  if (output !== undefined) declaration.outputSchema = output.json;
  if (definition.examples !== undefined) declaration.examples = definition.examples;
  if (timeoutMs !== undefined) declaration.timeoutMs = timeoutMs;
  if (definition.effect !== undefined) declaration.effect = definition.effect;
  return { declaration, handler: handlerOf(definition, input, output) };
}

function schemaOf(name: string, schema: unknown, side: Side): PreparedSchema | undefined {
  if (schema === undefined) return undefined;
  try {
    const prepared = prepareSchema(schema as SchemaLike, side);
    if (side === "input") refuseWhatIsNoObject(prepared.json);
    return prepared;
  } catch (fault) {
    throw fault instanceof SchemaConversionError ? fault.of(`${name} ${side}Schema`) : fault;
  }
}

/** A host function takes one object. */
function refuseWhatIsNoObject(schema: JsonSchema): void {
  const type = typeof schema === "object" ? schema["type"] : undefined;
  if (type === undefined || type === "object" || (Array.isArray(type) && type.includes("object"))) return;
  throw new SchemaConversionError("$", String(type), "a host function takes one object; use z.object()");
}

function handlerOf(definition: HostFunction, input: PreparedSchema | undefined, output: PreparedSchema | undefined): Handler {
  return async (sent, call) => {
    try {
      const parsed = await input?.parse?.(sent);
      if (parsed?.ok === false) return { failure: invalidInput(parsed.issues) };
      // Cancelled before its turn came: the effect need not happen.
      call.signal.throwIfAborted();
      const value = parsed === undefined ? sent : parsed.value;
      const given = await definition.execute(value, call);
      const judged = await output?.parse?.(given);
      if (judged?.ok === false) return { failure: invalidOutput(judged.issues) };
      return { output: encode(judged === undefined ? given : judged.value) };
    } catch (fault) {
      return { failure: failureOf(fault) };
    }
  };
}

/** brigd judged the JSON Schema; this is what only the schema's own library can say. */
function invalidInput(issues: readonly Issue[]): Failure {
  const told = issues.map(({ path, message }) => `${path}: ${message}`).join("; ");
  return failure(told, { name: "InvalidInput", code: "invalid_input", data: { issues } });
}

/** Names the places only: a message could quote what must not cross. */
function invalidOutput(issues: readonly Issue[]): Failure {
  const places = [...new Set(issues.map(({ path }) => path))].join(", ");
  return failure(`the function's output does not match its outputSchema at ${places}`, { name: "InvalidOutput", code: "invalid_output" });
}

function failure(message: string, data: Failure["data"]): Failure {
  return { code: -32000, message, data };
}

/** What crosses of anything that was thrown. */
export function failureOf(fault: unknown): Failure {
  if (fault instanceof JsonFault) {
    return failure(`the function's output has no JSON form: ${fault.message}`, { name: "InvalidOutput", code: "invalid_output" });
  }
  if (typeof fault !== "object" || fault === null) {
    return failure(typeof fault === "string" ? fault : "the function threw a value that is no Error", {});
  }
  const { name, message, code, data } = readError(fault);
  const crossing: Failure["data"] = {};
  if (name !== undefined) crossing.name = name;
  if (code !== undefined) crossing.code = code;
  if (data !== undefined) crossing.data = data;
  return failure(message ?? "the function failed and gave no reason", crossing);
}

function readError(fault: object): { name: string | undefined; message: string | undefined; code: string | undefined; data: unknown } {
  const read = (member: string): unknown => {
    try {
      return (fault as Record<string, unknown>)[member];
    } catch {
      return undefined;
    }
  };
  const text = (member: string): string | undefined => {
    const value = read(member);
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const code = read("code");
  const name = text("name");
  return {
    // The class that this package offers says nothing by its name.
    name: fault instanceof HostFunctionError && name === "HostFunctionError" ? undefined : name,
    message: text("message"),
    code: typeof code === "number" ? String(code) : text("code"),
    data: portable(read("data")),
  };
}

/** `data` if JSON can carry it: an error must cross even when its data can not. */
function portable(data: unknown): unknown {
  if (data === undefined) return undefined;
  try {
    return JSON.parse(encode(data)) as unknown;
  } catch {
    return undefined;
  }
}
