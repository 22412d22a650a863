// idea: make every text of an error throw or lie while the glue tells it: symbols as names, stack hooks, classes and toString (vm2: the error that makes errors)
// stops: errors are read without running their code
// expect: code guest_error
const e = new Error("told");
e.name = Symbol("name");
for (const hook of [undefined, null, 1, () => { throw new Error("hook"); }, (error, frames) => frames.map((f) => [f.getFunction?.(), f.getThis?.()])]) {
  Error.prepareStackTrace = hook;
  const made = new TypeError("made");
  made.name = Symbol("inner");
  made.toString = () => { throw made; };
  made[Symbol.toPrimitive] = () => { throw made; };
  try { void made.stack; console.error(made, [made]); } catch (seen) { console.error(typeof seen); }
  new Promise(() => { throw made; });
  (async () => { throw made; })();
  host.fail({}).then(() => {}, (reason) => { reason.name = Symbol("host"); throw reason; });
}
Object.defineProperty(e, "stack", { get() { for (;;); } });
Object.defineProperty(e, "constructor", { get() { for (;;); } });
throw e;
