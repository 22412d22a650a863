// idea: CPU that the engine's interrupt may never see: bigint
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
let x = 3n; for (let i = 0; i < 1e9; i++) x = (x * x) % (2n ** 200000n); return String(x).length;
