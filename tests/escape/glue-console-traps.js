// idea: print objects whose getters, proxies and inspect hooks run guest code
// stops: console reads nothing that runs
// expect: value "printed"
const p = new Proxy({}, { get() { throw new Error("trap"); }, ownKeys() { throw new Error("trap"); }, getPrototypeOf() { throw new Error("trap"); } });
console.log(p, { get x() { throw new Error("getter"); } }, { [Symbol.toPrimitive]() { throw 1; } }, Object.create(null), new (class { get [Symbol.toStringTag]() { throw 1; } })());
const loop = {}; loop.self = loop; console.log(loop);
return "printed";
