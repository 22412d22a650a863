// idea: have the console call a guest's inspect hook with tools of the host (vm2: util.inspect)
// stops: the console reads values without running their code
// expect: value 0
let called = 0;
const hook = () => { called += 1; return "x"; };
const bait = { [Symbol.for("nodejs.util.inspect.custom")]: hook, inspect: hook, toString: hook, valueOf: hook, [Symbol.toPrimitive]: hook, get [Symbol.toStringTag]() { return hook(); } };
console.log(bait, [bait], new Map([[bait, bait]]));
console.log("%s %o %O %j %d", bait, bait, bait, 1, 1);
console.table([bait]);
console.dir(bait, { customInspect: true });
console.error(Object.assign(new Error("e"), { bait, cause: bait }));
return called;
