/**
 * brig as one tool of the AI SDK: the model writes one program instead of many calls.
 *
 * Owns the tool object. The package `ai` is the user's own; nothing else of this package
 * imports this module. What runs, runs in brigd.
 */

import { jsonSchema, type Tool, tool } from "ai";
import type { Client } from "../client.js";
import type { HostFunctions } from "../functions.js";
import type { EvaluateOptions } from "../types.js";
import { answerOf, type ToolAnswer } from "./answers.js";

export type { ToolAnswer } from "./answers.js";

/** What a model gives the tool. */
export interface ToolInput {
  /** The program. */
  readonly source: string;
}

/** Options of `evaluate` that hold for every program of the model, and what it is told. */
export interface BrigToolOptions<Schemas = any> extends Omit<EvaluateOptions<Schemas>, "signal" | "vm" | "idempotencyKey"> {
  /** What the model is told of the tool; made by brigd of the functions when left out. */
  readonly description?: string | undefined;
}

/** Not options of the tool: they are for one evaluation only. */
const NOT_HERE = ["signal", "vm", "idempotencyKey"];

/**
 * The tool, for `tools: { execute: await brigTool(client, { hostFunctions }) }`. The model
 * is told the declarations of these functions and of the configured ones. A program that
 * fails is an answer that the model can repair it by; when the model's request is aborted,
 * so is the program.
 *
 * @throws {BrigError} when brigd can not be asked.
 * @throws {SchemaConversionError | TypeError} for options that can not be sent.
 */
export async function brigTool<const Schemas = any>(
  client: Client,
  options: BrigToolOptions<Schemas> = {},
): Promise<Tool<ToolInput, ToolAnswer>> {
  const odd = NOT_HERE.find((name) => name in options);
  if (odd !== undefined) throw new TypeError(`brigTool has no option "${odd}": it is for one evaluation, and a tool runs many`);
  const { description, ...rest } = options as BrigToolOptions;
  const execute = async ({ source }: ToolInput, { abortSignal }: { readonly abortSignal?: AbortSignal | undefined }): Promise<ToolAnswer> =>
    answerOf(await client.evaluate(source, { ...rest, signal: abortSignal }));
  return tool<ToolInput, ToolAnswer>({
    description: description ?? (await described(client, rest)),
    inputSchema: jsonSchema<ToolInput>(
      {
        type: "object",
        properties: { source: { type: "string", description: "The program." } },
        required: ["source"],
        additionalProperties: false,
      },
      { validate: inputOf },
    ),
    execute,
  });
}

/** What brigd says of the one tool over these functions. */
async function described(client: Client, options: EvaluateOptions): Promise<string> {
  const functions = options.collections?.map((collection) => `${collection}.*`);
  const { tool } = await client.types(options.hostFunctions as HostFunctions | undefined, { functions });
  return tool.description;
}

function inputOf(value: unknown): { success: true; value: ToolInput } | { success: false; error: Error } {
  const source = (value as { source?: unknown } | null)?.source;
  if (typeof source === "string") return { success: true, value: { source } };
  return { success: false, error: new TypeError('the input has to be { "source": "…" }, with the program as text') };
}
