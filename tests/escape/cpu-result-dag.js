// idea: CPU that the engine's interrupt may never see: result-dag
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
let o = [1]; for (let i = 0; i < 40; i++) o = [o, o]; return o;
