// idea: walk up arguments.callee and Function.caller into the glue
// stops: glue uses captured intrinsics
// expect: value true
let seen = [];
const o = { get x() { try { seen.push(typeof arguments.callee.caller); } catch { seen.push("threw"); } return 1; } };
await host.echo(o);
function called() { return called.caller; }
let above;
try { above = [1].map(called)[0]; } catch { above = null; }
return seen.length > 0 && seen.every((s) => s !== "function") && typeof above !== "function" && typeof host.echo === "function";
