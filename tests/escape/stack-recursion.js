// idea: recurse without end and catch it
// stops: engine's stack limit
// expect: value "RangeError"
const f = () => f() + 1;
try { f(); } catch (e) { return e.name; }
