// idea: CPU that the engine's interrupt may never see: regexp
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
return /^(a+)+$/.test("a".repeat(40) + "b");
