// idea: CPU that the engine's interrupt may never see: copywithin
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
return Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1);
