// idea: an input nested deeper than the wire carries
// stops: nesting limit
// expect: value true
let o = {}; for (let i = 0; i < 5000; i++) o = { o };
try { await host.echo(o); return false; } catch (e) { return typeof e.message === "string"; }
