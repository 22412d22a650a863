// idea: call host functions with no this, as constructors, bound, applied and with a replaced call, to be handed something of the glue (vm2: call and apply, sloppy this)
// stops: host functions are plain natives that take one value
// expect: value [true,true,true]
const F = Function.prototype, got = [], kept = [F.call, F.apply, F.bind];
F.call = F.apply = function (...all) { got.push(this, ...all); };
Object.defineProperty(Promise, Symbol.hasInstance, { value: () => { got.push("asked"); return true; } });
const answers = [await host.echo({ a: 1 }), await Reflect.apply(host.echo, undefined, [{ a: 2 }]), await Reflect.apply(host.echo, globalThis, [{ a: 3 }, host])];
[F.call, F.apply, F.bind] = kept;
answers.push(await host.echo.bind(null, { a: 4 })(), await host.echo.call(new Proxy({}, { get() { got.push("this"); } }), { a: 5 }));
for (const make of [() => new host.echo({}), () => Reflect.construct(host.echo, [{}]), () => Reflect.construct(Object, [], host.echo), () => class extends host.echo {}]) {
  try { const made = make(); got.push(...(made?.constructor === Object || typeof made === "function" ? [] : [made])); } catch (e) { if (!(e instanceof TypeError)) got.push(e); }
}
return [answers.map((one) => one.a).join() === "1,2,3,4,5", got.length === 0, !("prototype" in host.echo) || host.echo.prototype === undefined];
