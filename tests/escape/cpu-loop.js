// idea: CPU that the engine's interrupt may never see: loop
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
for (;;) {}
