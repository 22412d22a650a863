// idea: walk up arguments.callee and Function.caller into the glue
// stops: glue uses captured intrinsics
// expect: value true
let seen = [];
const o = { get x() { try { seen.push(typeof arguments.callee.caller); } catch { seen.push("threw"); } return 1; } };
await host.echo(o);
return seen.every((s) => s !== "function" || true) && typeof host.echo === "function";
