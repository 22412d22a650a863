// idea: throw an error whose message getter never returns
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|guest_error|cpu_limit
// wall: 1500
const e = new Error("x");
Object.defineProperty(e, "message", { get() { for (;;) {} } });
throw e;
