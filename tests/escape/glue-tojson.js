// idea: toJSON that lies, throws, and changes the object while it is written
// stops: glue uses captured intrinsics
// expect: value ["x","threw",{"b":2}]
const lie = await host.echo({ v: { toJSON() { return "x"; } } });
let threw; try { await host.echo({ v: { toJSON() { throw new Error("boom"); } } }); threw = "no"; } catch { threw = "threw"; }
const o = { a: { toJSON() { delete o.a; return undefined; } }, b: 2 };
return [lie.v, threw, await host.echo(o)];
