// idea: build code through the async, generator and async generator constructors
// stops: fresh realm, no host objects
// expect: value ["undefined","undefined","undefined"]
const A = (async () => {}).constructor, G = (function* () {}).constructor, AG = (async function* () {}).constructor;
return [await A("return typeof process")(), G("return typeof require")().next().value, (await AG("return typeof std")().next()).value];
