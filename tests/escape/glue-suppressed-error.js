// idea: take errors of host calls apart where they are wrapped: using, disposable stacks, AggregateError, cause (vm2: SuppressedError)
// stops: errors of host calls are made in the realm, without anything of the host
// expect: value [true,"undefinedundefined"]
const caught = [];
const held = { async [Symbol.asyncDispose]() { await host.fail({}); }, [Symbol.dispose]() { const e = new Error(); e.name = Symbol(); throw e; } };
try { await using a = held; throw null; } catch (e) { caught.push(e); }
try { using a = held; throw null; } catch (e) { caught.push(e); }
for (const Stack of [globalThis.DisposableStack, globalThis.AsyncDisposableStack]) {
  if (!Stack) continue;
  const stack = new Stack();
  stack.defer(() => { throw null; });
  stack.defer(() => host.fail({}));
  try { await (stack.disposeAsync ? stack.disposeAsync() : stack.dispose()); } catch (e) { caught.push(e); }
}
await Promise.any([host.fail({}), host.secret({})]).catch((e) => caught.push(e, ...e.errors));
await host.fail({}).catch((e) => caught.push(e, e.cause, new Error("outer", { cause: e })));
const inner = caught.flatMap((e) => [e, e?.error, e?.suppressed, e?.cause, e?.data]).filter((e) => typeof e === "object" && e !== null);
const own = inner.every((e) => Object.getPrototypeOf(e) === null || e.constructor.constructor === Function);
return [own && inner.length > 3, inner[0].constructor.constructor("return typeof process + typeof std")()];
