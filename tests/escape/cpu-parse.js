// idea: CPU that the engine's interrupt may never see: parse
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
return (0, eval)("{" + Array.from({ length: 200000 }, (_, i) => "let a" + i).join(";") + "}");
