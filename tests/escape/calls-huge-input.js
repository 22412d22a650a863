// idea: an input far over its limit
// stops: limit on input bytes
// expect: value "invalid_input"
try { await host.echo({ x: "y".repeat(3e6) }); return "ran"; } catch (e) { return e.code; }
