/**
 * The functions that need no client: they share one for each brigd.
 *
 * Owns those clients. They let the process end while nothing is in flight.
 */

import { Client } from "./client.js";
import type { JsonValue } from "./json.js";
import type { CheckOptions, CheckResult, ConnectOptions, EvaluateOptions, EvaluateResult, VmOptions } from "./types.js";
import type { Vm } from "./vm.js";

const clients = new Map<string, Client>();

/**
 * Runs a program in a fresh sandbox. One that fails is a result: see `outcome`.
 *
 * @throws {BrigError} when there is no result; `nothingRan` says whether that is certain.
 */
export async function evaluate<T = JsonValue, const Schemas = any>(
  source: string,
  options: EvaluateOptions<Schemas> & ConnectOptions = {},
): Promise<EvaluateResult<T>> {
  const { client, rest } = shared(options);
  return client.evaluate<T, Schemas>(source, rest);
}

/** Parses a program without running it, and checks its types where `hostFunctions` or `types` are given. */
export async function check<const Schemas = any>(source: string, options: CheckOptions<Schemas> & ConnectOptions = {}): Promise<CheckResult> {
  const { client, rest } = shared(options);
  return client.check(source, rest);
}

/** Makes a vm: a worker that keeps its realm between evaluations. */
export async function createVm<const Schemas = any>(options: VmOptions<Schemas> & ConnectOptions = {}): Promise<Vm> {
  const { client, rest } = shared(options);
  return client.createVm<Schemas>(rest);
}

/** Ends what these functions share: connections and a private brigd. The next call starts anew. */
export async function shutdown(): Promise<void> {
  const all = [...clients.values()];
  clients.clear();
  await Promise.all(all.map((client) => client.close()));
}

function shared<O extends ConnectOptions>(options: O): { client: Client; rest: Omit<O, keyof ConnectOptions> } {
  const { socket, brigd, ...rest } = options;
  const key = JSON.stringify([socket ?? process.env["BRIG_SOCKET"] ?? "", brigd ?? ""]);
  let client = clients.get(key);
  if (client === undefined) {
    client = new Client({ socket, brigd });
    clients.set(key, client);
  }
  return { client, rest };
}
