// idea: CPU that the engine's interrupt may never see: normalize
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit|guest_error|result_too_large|unserializable_value
// wall: 1500
return ("a" + "\u0301\u0323".repeat(3e6)).normalize("NFC").length;
