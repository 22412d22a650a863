// idea: never end where a deadline is not looked at: in a promise's executor within another, in reactions, thenables, timers, disposers and async generators, after having caught whatever ended the loop before (quickjs-emscripten, isolated-vm)
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit
// wall: 1500
const forever = () => { for (;;) { try { for (;;); } catch { /* whatever it was */ } finally { for (;;); } } };
setTimeout(forever);
queueMicrotask(() => Promise.resolve({ get then() { return forever(); } }));
const dispose = async () => { await using last = { [Symbol.asyncDispose]: async () => forever() }; };
Promise.reject(1).catch(() => new Promise(() => { new Promise(async (resolve) => { await null; try { for await (const one of (async function* () { yield 1; forever(); })()) resolve(one); } finally { await dispose(); forever(); } }); }));
await new Promise((resolve) => setTimeout(resolve, 1e6));
