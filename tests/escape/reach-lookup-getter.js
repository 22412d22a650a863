// idea: climb by __lookupGetter__ and __proto__ from everything that the glue made to a prototype of another realm (vm2: prototype walks)
// stops: fresh realm, no host objects
// expect: value []
const up = ({}).__lookupGetter__("__proto__");
const failed = await host.fail({}).catch((e) => e);
const answered = await host.list({});
const starts = { host, echo: host.echo, promise: host.echo({}), failed, data: failed.data, answered, list: answered.list, inputs, nested: inputs.nested, console, log: console.log, url: new URL("http://a.example/"), signal: new AbortController().signal, encoder: new TextEncoder(), bytes: new TextEncoder().encode("x"), clone: structuredClone({ a: [] }), crypto, performance, timer: setTimeout, Intl, format: new Intl.NumberFormat("en") };
const own = new Set([Object, Function, Array, Error, Promise, HostError, Uint8Array].map((one) => one.prototype));
const strange = [];
for (const [name, start] of Object.entries(starts)) {
  let last = start, steps = 0;
  for (let next = start; next !== null && next !== undefined && steps < 20; next = up.call(next), steps += 1) last = next;
  if (start !== undefined && last !== Object.prototype && last !== start && !own.has(last) && last !== Intl) strange.push(name);
  let made;
  try { made = last.constructor; } catch { made = undefined; }
  if (typeof made === "function" && made.constructor("return typeof process + typeof std")() !== "undefinedundefined") strange.push(`${name}: climbed`);
}
return strange;
