/** Language models of each version of the AI SDK that do what a test scripts. */

/** One answer of a model: a call of the tool, or text. */
export type Said = { readonly tool: string; readonly input: unknown } | { readonly text: string };

/** What the AI SDK asks its models for, as far as tests look at it. */
export interface Asked {
  readonly prompt: readonly { readonly role: string; readonly content: any }[];
  readonly tools?: readonly { readonly name: string; readonly description?: string; readonly inputSchema: any }[];
  readonly abortSignal?: AbortSignal;
}

/** A `doGenerate` that gives these one by one, and keeps what it was asked in `asked`. */
export function scripted(version: 2 | 3 | 4, says: readonly Said[], asked: Asked[]): (options: any) => Promise<any> {
  const left = [...says];
  return async (options: Asked) => {
    asked.push(options);
    const said = left.shift();
    if (said === undefined) throw new Error("the model was asked once more than the test says");
    const calls = "tool" in said;
    const why = calls ? "tool-calls" : "stop";
    const content = calls
      ? { type: "tool-call", toolCallId: `call_${asked.length}`, toolName: said.tool, input: JSON.stringify(said.input) }
      : { type: "text", text: said.text };
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    return {
      content: [content],
      finishReason: version === 2 ? why : { unified: why, raw: undefined },
      usage: version === 2 ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 } : usage,
      warnings: [],
    };
  };
}
