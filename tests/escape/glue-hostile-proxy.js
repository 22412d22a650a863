// idea: a proxy as input whose traps re-enter the bridge and lie about keys
// stops: glue uses captured intrinsics
// expect: value true
let depth = 0;
const p = new Proxy({}, {
  ownKeys() { if (depth++ < 3) { host.echo(p).catch(() => {}); } return ["a", "a".repeat(3)]; },
  getOwnPropertyDescriptor() { return { value: 1, enumerable: true, configurable: true }; },
  get(_, k) { return k === "toJSON" ? undefined : 7; },
});
let r; try { r = await host.echo(p); } catch (e) { r = e.name; }
return r !== undefined;
