// idea: run code from finalizers and weak references after the end
// stops: supervisor's deadline, CPU timer
// expect: value 1 or code timed_out|cpu_limit
const r = new FinalizationRegistry(() => { for (;;) {} });
for (let i = 0; i < 1000; i++) r.register({}, i);
return 1;
