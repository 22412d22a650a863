// idea: hide values from the collector, or free what still runs: async generators re-entered while they settle, functions that sleep with a list half made or a resource to dispose of, iterators that end themselves (reports of QuickJS, 2023 to 2026)
// stops: the engine's checks; else only the worker is lost
// expect: value true or code worker_crashed
const garbage = () => { for (let i = 0; i < 300; i += 1) { const loop = { i }; loop.loop = [loop, () => loop]; } };
const turns = async (n) => { for (let i = 0; i < n; i += 1) await null; };
const quiet = async (work) => { try { return await work(); } catch (e) { if (!(e instanceof Error)) throw e; return undefined; } };
// A getter that every settling promise asks goes back into the generator that it settles.
for (let round = 0; round < 6; round += 1) {
  let generator, asked = 0, inside = false;
  const steps = [(g) => g.return(0), (g) => { g.next(1); g.return(1); }, (g) => g.throw(new Error("again")), (g) => { g.next(); g.next(); }];
  Object.defineProperty(Object.prototype, "then", { configurable: true, get() {
    if (inside || !generator || asked > 8) return undefined;
    inside = true;
    try { Promise.prototype.catch.call(steps[(asked + round) % steps.length](generator) ?? Promise.resolve(), () => {}); } catch { /* it is only to be tried */ }
    asked += 1; inside = false; garbage();
    return undefined;
  } });
  generator = (async function* () { try { for (let i = 0; i < 4; i += 1) yield Promise.resolve({ i }); } finally { yield [{}]; await null; } })();
  const open = [generator.next(), generator.next(), generator.return(3), generator.next()];
  await turns(20);
  delete Object.prototype.then;
  generator = undefined;
  await Promise.allSettled(open);
  garbage();
}
// Asleep with values on the stack that nothing else holds.
const sleepers = [];
for (let i = 0; i < 200; i += 1) {
  let wake;
  const gate = new Promise((resolve) => { wake = resolve; });
  sleepers.push((async () => { const made = [{ i }, [i], await gate, { after: i }]; return made.length + `${{ toString: () => "x" }}${await gate}`.length; })());
  sleepers.push((async () => { using held = { [Symbol.dispose]() { garbage(); } }; for await (const one of (async function* () { yield { one: i }; await gate; yield [i]; })()) { using inner = { [Symbol.dispose]() { this.inner = this; } }; if (one.length) return 1; } return held; })());
  if (i % 20 === 0) garbage();
  sleepers.push((async () => { const closure = { i, again: () => closure }; gate.then(() => closure.again()); await gate; return closure.i; })());
  if (i % 3 === 0) wake(i); else setTimeout(wake, 1, i);
}
await Promise.allSettled(sleepers);
// Suspended for good, in a circle that only the collector ends.
for (let i = 0; i < 500; i += 1) { const circle = {}; circle.asleep = (async () => { await new Promise(() => {}); return circle; })(); circle.generator = (function* () { yield circle; })(); circle.generator.next(); }
garbage();
// Iterators that drop what they stand on.
await quiet(async () => { const parts = [[1, 2], { [Symbol.iterator]() { parts.length = 0; garbage(); return { next() { parts.push([{}]); return { done: parts.length > 3, value: {} }; } }; } }]; return [...Iterator.concat(...parts, new Set([{}]))]; });
await quiet(async () => { const source = { i: 0, next() { source.next = null; garbage(); return { done: this.i++ > 5, value: { i: this.i } }; }, return() { garbage(); return {}; }, __proto__: Iterator.prototype }; return source.map((x) => { source.return = null; return [x]; }).flatMap((x) => x).take(3).toArray(); });
class Evil extends Uint8Array {}
for (const made of [() => Reflect.construct(Uint8Array, [new ArrayBuffer(16)], new Proxy(Evil, { get(target, name) { garbage(); return Reflect.get(target, name); } })), () => Reflect.construct(Promise, [(resolve) => resolve({ get then() { garbage(); return undefined; } })], Evil)]) await quiet(async () => made());
const weak = new WeakRef({}); const ends = new FinalizationRegistry((held) => held);
for (let i = 0; i < 500; i += 1) { const key = { i }; ends.register(key, { key: i }, key); if (i % 2) ends.unregister(key); new WeakSet([key]); }
garbage(); await turns(3);
return weak.deref() === undefined;
