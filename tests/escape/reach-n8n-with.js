// idea: name the constructor where a filter of names does not look: with, destructuring, labels, lists as keys (n8n, 2026)
// stops: fresh realm, no host objects
// expect: value ["undefined","undefined","undefined","undefined","undefined"]
const ask = "return typeof process === 'undefined' ? typeof require : 'process'";
const viaWith = (0, eval)("(function (f) { with (f) { with (constructor) { return constructor; } } })(() => {})");
const { constructor: { constructor: viaPattern } } = host.echo;
const viaList = ((x) => x)[["constructor"]];
const viaDescriptor = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(() => {}), "constructor").value;
const viaTag = Reflect.get((strings) => strings, `${["const", "ructor"].join("")}`);
return [viaWith, viaPattern, viaList, viaDescriptor, viaTag].map((F) => F(ask)());
