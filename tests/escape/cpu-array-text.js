// idea: CPU that the engine's interrupt may never see: a list of a billion holes as text (quickjs-emscripten)
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
return `${new Array(1_000_000_000)}`.length;
