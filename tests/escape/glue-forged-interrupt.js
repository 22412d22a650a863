// idea: catch the interrupt of the engine and go on
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit
// wall: 800
for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }
