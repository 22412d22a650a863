// idea: give promises of host calls to the static methods, species and constructors of a guest's own class (vm2: promise species, stolen statics)
// stops: promises of host calls are the realm's own
// expect: value [true,true]
const seen = [];
function Fake(executor) {
  executor((value) => seen.push(value), (reason) => seen.push(reason));
}
Fake.resolve = (value) => value;
for (const name of ["all", "allSettled", "any", "race", "try", "resolve", "reject", "withResolvers"]) {
  try { Fake[name] = Promise[name]; Fake[name]?.([host.echo({ name }), host.fail({})]); } catch (e) { seen.push(e); }
}
Promise.all.call(Fake, { [Symbol.iterator]() { const e = new Error(); e.name = Symbol(); throw e; } });
for (const call of [host.echo({ n: 1 }), host.fail({}), host.secret({})]) {
  let first = true;
  Object.defineProperty(call, "constructor", { configurable: true, get() { if (first) { first = false; return Promise; } return { [Symbol.species]: Fake }; } });
  try { call.then(); call.then((value) => { seen.push(value); }); call.finally(() => { throw new Error("late"); }); } catch (e) { seen.push(e); }
}
const odd = Reflect.construct(Promise, [(kept) => kept(host.fail({}))], Fake);
Promise.prototype.then.call(odd, (value) => seen.push(value), (reason) => seen.push(reason));
let objects = [];
for (let round = 0; round < 1000 && !(objects.length > 5 && objects.some((one) => one instanceof HostError)); round++) {
  await new Promise((kept) => setTimeout(kept, 5));
  objects = seen.filter((one) => one !== null && typeof one === "object");
}
const failed = objects.find((one) => one instanceof HostError);
const own = objects.length > 5 && objects.every((one) => one.constructor.constructor === Function);
return [own, failed.constructor.constructor("return typeof process + typeof require + typeof std")() === "undefinedundefinedundefined"];
