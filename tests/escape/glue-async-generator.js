// idea: catch what the glue throws by yield*, return and thenables of async generators (vm2: yield* of an async generator)
// stops: glue throws errors of the guest's own realm
// expect: value [true,"undefinedundefined"]
const seen = [];
const thenable = { get then() { seen.push(new Error("asked")); return (kept) => kept(host.fail({})); } };
async function* outer(inner) { try { yield* inner; } catch (e) { seen.push(e); } }
const sources = [
  (async function* () { yield host.fail({}); })(),
  (async function* () { return host.secret({}); })(),
  (async function* () { yield thenable; })(),
  { [Symbol.asyncIterator]: () => ({ next: () => host.fail({}), return: () => thenable }) },
  { [Symbol.asyncIterator]: () => ({ next: () => ({ done: false, value: host.fail({}) }), get return() { throw new Error("no"); } }) },
];
for (const source of sources) {
  const it = outer(source);
  try { seen.push(await it.next()); seen.push(await it.return(thenable)); } catch (e) { seen.push(e); }
  try { seen.push(await it.throw(host.fail({}).catch((e) => e))); } catch (e) { seen.push(await e); }
}
try { seen.push(await Array.fromAsync([host.echo({}), thenable, host.fail({})])); } catch (e) { seen.push(e); }
const own = seen.filter((one) => typeof one === "object" && one !== null).every((one) => one.constructor.constructor === Function);
return [own && seen.some((one) => one instanceof HostError), seen[0].constructor.constructor("return typeof process + typeof std")()];
