// idea: a getter in the result that spins while the result is read
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit
// wall: 1000
return { get a() { for (;;) {} } };
