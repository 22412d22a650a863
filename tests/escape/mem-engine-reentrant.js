// idea: change what a native of the engine works on while it works: resized buffers, shrunk arrays, mapped arguments, ropes (advisories of QuickJS, 2025 and 2026)
// stops: the engine's checks; else only the worker is lost
// expect: value true or code worker_crashed
const rab = () => new ArrayBuffer(64, { maxByteLength: 256 });
const shrink = (buffer) => ({ valueOf() { buffer.resize(1); return 0; }, toString() { buffer.resize(2); return "1"; } });
const grow = (buffer) => ({ valueOf() { buffer.resize(256); return 1; } });
const tried = (work) => { try { return work(); } catch (e) { if (!(e instanceof Error)) throw e; return undefined; } };
for (const Type of [Uint8Array, Int16Array, Float64Array, BigInt64Array, Uint8ClampedArray]) {
  for (const change of [shrink, grow]) {
    for (const name of ["indexOf", "lastIndexOf", "includes", "fill", "at", "with", "copyWithin", "slice", "subarray", "set", "join", "toLocaleString"]) {
      const buffer = rab();
      const view = new Type(buffer);
      tried(() => view[name](change(buffer), change(buffer), change(buffer)));
      tried(() => view[name](1, change(buffer)));
    }
    for (const name of ["sort", "map", "filter", "forEach", "reduce", "some", "findLast", "toSorted"]) {
      const buffer = rab();
      tried(() => new Type(buffer)[name]((a) => { buffer.resize(buffer.byteLength === 8 ? 128 : 8); return a ? -1 : 1; }));
    }
    const buffer = rab();
    const source = new Type(buffer);
    tried(() => new Type(Object.defineProperty(source, Symbol.iterator, { value: function* () { buffer.resize(1); yield* [1, 2, 3, 4].map((n) => (Type === BigInt64Array ? BigInt(n) : n)); } })));
    tried(() => new Type({ length: 1000, get 0() { buffer.resize(0); return 1; } }));
    tried(() => new Type(buffer, change(buffer), 8));
    tried(() => { class Odd extends Type { static get [Symbol.species]() { return function () { buffer.resize(1); return new Type(buffer); }; } } new Odd(buffer).map((n) => n); });
    tried(() => new DataView(buffer).setFloat64(change(buffer), 1));
    tried(() => buffer.transfer(change(buffer)));
  }
}
for (const name of ["sort", "splice", "concat", "fill", "lastIndexOf", "flat", "copyWithin", "includes", "reverse", "unshift", "toSpliced", "slice", "join"]) {
  const list = Array.from({ length: 200 }, (_, i) => i);
  const hook = { valueOf() { list.length = 0; list.push({}, []); return 3; }, toString() { list.length = 1; return "x"; } };
  list[5] = hook;
  tried(() => list[name](name === "sort" ? () => { list.length = 2; list.fill(hook, 0, 300); return -1; } : hook, hook, hook));
  list.constructor = { [Symbol.species]: function () { list.length = 0; return list; } };
  tried(() => list[name](hook, hook));
}
function mapped(a, b) { const own = arguments; own.self = own; return [() => { a = own; return b; }, own]; }
const kept = [];
for (let i = 0; i < 20000; i += 1) { const [f, own] = mapped(i, {}); own[0] = f; if (i % 100 === 0) kept.push(f()); }
let rope = "a";
for (let i = 0; i < 4000; i += 1) rope = i % 2 ? rope + rope.at(i % 7) + "é" : `${i}${rope}`;
const texts = [rope === rope + "", rope.indexOf("é9"), rope.localeCompare(rope + "x"), rope.replaceAll("é", "").length, (1n << 5000n).toString(7).length, BigInt.asIntN(64, -(1n << 4000n))];
const regexp = /(a|b)*?/y;
regexp[Symbol.replace]("ab".repeat(100), () => { regexp.compile("(c)", "g"); regexp.lastIndex = { valueOf() { return 1e9; } }; return ""; });
const cleaned = new FinalizationRegistry(() => {});
for (let i = 0; i < 1000; i += 1) { const held = { i }; cleaned.register(held, held.i, new WeakRef(held)); new WeakMap([[held, held]]); }
const map = new Map(Array.from({ length: 50 }, (_, i) => [i, i]));
for (const [key] of map) { map.delete(key); if (key < 500) map.set(key + 50, key); if (key % 13 === 0) map.clear(); }
return texts.length === 6 && kept.length === 200;
