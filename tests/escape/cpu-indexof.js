// idea: CPU that the engine's interrupt may never see: indexof
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
const s = "a".repeat(4e6) + "b"; let n = 0; for (let i = 0; i < 1e9; i++) n += s.indexOf("ab".repeat(1000)); return n;
