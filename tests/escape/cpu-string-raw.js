// idea: CPU that the engine's interrupt may never see: string-raw
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
return String.raw({ raw: { length: 2 ** 53 - 1 } }).length;
