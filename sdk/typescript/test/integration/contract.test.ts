/** The behaviours of tests/contract, by this SDK, through a real brigd. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, type CheckOptions, connect, type DetachOptions, type EvaluateOptions, type EvaluationStatus, type Vm } from "brig";
import { brigd } from "../brigd.js";
import { has, holds, isRefused } from "../contract.js";
import { functionsOf, type Script, Told } from "../scripted.js";

const LIST = join(dirname(fileURLToPath(import.meta.url)), "../../../../../tests/contract/behaviours.json");

type Step = { readonly by?: "one" | "another"; readonly in?: "other"; readonly options?: any; readonly functions?: Script; readonly expect?: any; readonly [kind: string]: any };
type VmOptions = { readonly functions?: Script; readonly [option: string]: any };
interface Behaviour {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly vm?: VmOptions;
  readonly other?: VmOptions;
  readonly sdks?: readonly string[];
  readonly why?: string;
}

const behaviours = JSON.parse(readFileSync(LIST, "utf8").replaceAll("{sdk}", "typescript")) as Behaviour[];
const here = behaviours.filter(({ sdks }) => sdks === undefined || sdks.includes("typescript"));
let ran = 0;
let keeper: Client;

before(async () => {
  delete process.env["BRIG_SOCKET"];
  process.env["BRIGD"] = brigd();
  keeper = await connect();
});
after(async () => {
  await keeper.close();
  assert.equal(ran, here.length, "behaviours that ran");
});

/** What the steps of one behaviour share. */
class Run {
  vm: Vm | undefined;
  other: Vm | undefined;
  detached: EvaluationStatus | undefined;
  readonly ids: (string | undefined)[] = [];

  constructor(
    readonly one: Client,
    readonly another: Client,
  ) {}

  client(step: Step): Client {
    return step.by === "another" ? this.another : this.one;
  }

  /** The evaluation that `wait`, `get` and `cancel` are about. */
  get evaluation(): string {
    assert.ok(this.detached !== undefined, "nothing was detached");
    return this.detached.evaluation;
  }
}

function optionsOf({ options = {}, functions }: Step, told: Told): EvaluateOptions {
  const { listen, cancelOn, ...plain } = options;
  const listeners = {
    onStdout: (text: string) => {
      told.stdout += text;
      if (cancelOn === "output") told.cancel.abort();
    },
    onStderr: (text: string) => (told.stderr += text),
    onWarning: ({ code }: { code: string }) => code !== "limit_near" && told.warnings.push(code),
  };
  assert.ok([undefined, true, "warnings"].includes(listen), `listen "${listen}" has no implementation here`);
  assert.ok(cancelOn === undefined || cancelOn === "output", `cancelOn "${cancelOn}" has no implementation here`);
  return {
    ...plain,
    signal: told.cancel.signal,
    ...(functions === undefined ? {} : { hostFunctions: functionsOf(functions, told) }),
    ...(listen === true || cancelOn !== undefined ? listeners : {}),
    ...(listen === "warnings" ? { onWarning: listeners.onWarning } : {}),
  };
}

async function statusIs(run: Run, asked: Promise<EvaluationStatus>, { refused, ...expect }: any): Promise<EvaluationStatus | undefined> {
  if (refused !== undefined) return void (await isRefused(asked, refused));
  const status = await asked;
  const { state, result, sameAs, ...odd } = expect;
  assert.deepEqual(odd, {}, "expectations without an implementation here");
  assert.ok(state.includes(status.state), JSON.stringify(status));
  assert.equal(status.result !== undefined, status.state !== "running");
  if (result !== undefined) await holds({ result: status.result as never, told: new Told(), ids: [] }, result);
  if (sameAs !== undefined) assert.equal(status.evaluation, run.ids[sameAs]);
  assert.ok(status.startedMs > 0 && (status.endedMs ?? Infinity) >= status.startedMs, JSON.stringify(status));
  return status;
}

const STEPS: { readonly [kind: string]: (run: Run, step: Step, given: any) => Promise<string | undefined | void> } = {
  async evaluate(run, step, source: string) {
    const told = new Told();
    const options = optionsOf(step, told);
    const vm = step.in === "other" ? run.other : run.vm;
    const byId = vm !== undefined && step.by !== undefined ? { ...options, vm: vm.id } : options;
    const asked = vm === undefined || step.by !== undefined ? run.client(step).evaluate(source, byId) : vm.evaluate(source, options);
    if (step.expect.refused !== undefined) return void (await isRefused(asked, step.expect.refused));
    const result = await asked;
    await holds({ result, told, ids: run.ids }, step.expect);
    return result.evaluation;
  },
  async together(run, _step, steps: readonly Step[]) {
    await Promise.all(steps.map((step) => takes(run, step)));
  },
  async check(run, step, source: string) {
    const found = await run.client(step).check(source, (step.options ?? {}) as CheckOptions);
    has(found, step.expect, "check");
  },
  async types(run, step) {
    const { declarations, toolName, tool, ...odd } = step.expect;
    assert.deepEqual(odd, {}, "expectations without an implementation here");
    const types = await run.client(step).types(functionsOf(step.functions ?? {}, new Told()));
    for (const part of declarations) assert.ok(types.declarations.includes(part), `${part} is not in ${types.declarations}`);
    for (const part of tool) assert.ok(types.tool.description.includes(part), `${part} is not in ${types.tool.description}`);
    assert.equal(types.tool.name, toolName);
  },
  async detach(run, step, source: string) {
    const begun = await statusIs(run, run.client(step).detach(source, (step.options ?? {}) as DetachOptions), step.expect);
    run.detached = begun;
    return begun?.evaluation;
  },
  async wait(run, step, given: object) {
    await statusIs(run, run.client(step).waitEvaluation(run.evaluation, given), step.expect);
  },
  async get(run, step, { evaluation }: { evaluation?: string }) {
    await statusIs(run, run.client(step).getEvaluation(evaluation ?? run.evaluation), step.expect);
  },
  async cancel(run, step) {
    await run.client(step).request("cancel", { evaluation: run.evaluation });
  },
  async vms(run, step) {
    const own = (await run.client(step).listVms()).some(({ vm }) => vm === run.vm?.id);
    has({ own }, step.expect, "vms");
  },
  async dispose(run) {
    await run.vm?.dispose();
  },
};

async function takes(run: Run, step: Step): Promise<string | undefined> {
  const { by: _by, in: _in, options: _options, functions: _functions, expect: _expect, ...kinds } = step;
  const [[kind = "", given] = [], ...more] = Object.entries(kinds);
  assert.deepEqual(more, [], "one step does one thing");
  const take = STEPS[kind];
  assert.ok(take !== undefined, `the step "${kind}" has no implementation here`);
  return (await take(run, step, given)) ?? undefined;
}

async function vmOf(client: Client, wanted: VmOptions | undefined): Promise<Vm | undefined> {
  if (wanted === undefined) return undefined;
  const { functions = {}, ...options } = wanted;
  return client.createVm({ ...options, hostFunctions: functionsOf(functions, new Told()) });
}

/** Says where it failed. */
async function takesAll(run: Run, steps: readonly Step[]): Promise<void> {
  for (const [index, step] of steps.entries()) {
    try {
      run.ids.push(await takes(run, step));
    } catch (fault) {
      throw new Error(`step ${index} (${JSON.stringify(step).slice(0, 300)}): ${fault instanceof Error ? fault.message : String(fault)}`, { cause: fault });
    }
  }
}

for (const { name, steps, vm, other, sdks, why, ...odd } of behaviours) {
  if (!here.some((one) => one.name === name)) {
    test(name, { skip: why ?? assert.fail(`${name} does not say why it is only for ${sdks?.join()}`) });
    continue;
  }
  test(name, { timeout: 120_000 }, async () => {
    assert.deepEqual(odd, {}, "members without an implementation here");
    const socket = keeper.socket;
    const run = new Run(await connect({ socket }), await connect({ socket }));
    try {
      run.vm = await vmOf(run.one, vm);
      run.other = await vmOf(run.one, other);
      await takesAll(run, steps);
      ran++;
    } finally {
      await run.one.close();
      await run.another.close();
    }
  });
}
