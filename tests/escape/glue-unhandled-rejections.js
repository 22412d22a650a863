// idea: end the host by promises that nobody catches (vm2: the executor's and the host promise's unhandled rejection)
// stops: unhandled rejections are warnings, and bounded
// expect: value 1
const odd = () => { const e = new Error("x".repeat(10000)); e.name = Symbol("odd"); return e; };
for (let i = 0; i < 2000; i += 1) {
  new Promise(() => { throw odd(); });
  Promise.reject(i % 2 ? odd() : new Proxy({}, { get() { throw odd(); }, getPrototypeOf() { throw odd(); } }));
  (async () => { throw { get message() { throw odd(); } }; })();
  (async function* () { throw null; })().next();
  setTimeout(() => { throw odd(); }, 0);
  queueMicrotask(() => { throw odd(); });
}
for (let i = 0; i < 50; i += 1) { host.fail({}); void host.secret({}); }
await new Promise((kept) => setTimeout(kept, 20));
return 1;
