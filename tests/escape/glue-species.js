// idea: Symbol.species and constructor on arrays and promises
// stops: glue uses captured intrinsics
// expect: value true
class Evil extends Promise { static get [Symbol.species]() { return class { constructor(f) { f(() => {}, () => {}); } }; } }
Object.defineProperty(Promise, Symbol.species, { configurable: true, get() { return Evil; } });
Array.prototype.constructor = { [Symbol.species]: function () { return {}; } };
const got = await host.list({});
return got.list.length === 3;
