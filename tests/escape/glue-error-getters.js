// idea: throw errors whose name, message, stack and cause are getters that throw or never end
// stops: glue uses captured intrinsics
// expect: code guest_error|timed_out|cpu_limit
const e = new Error("x");
for (const k of ["name", "message", "stack", "cause", "errors", "constructor", "toString"]) Object.defineProperty(e, k, { get() { throw e; } });
throw e;
