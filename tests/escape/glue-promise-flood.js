// idea: queue micro-tasks without end, so that the loop never gets to anything else
// stops: supervisor's deadline, CPU timer
// expect: code timed_out|cpu_limit|memory_limit
// wall: 1000
const again = () => Promise.resolve().then(again);
again(); await new Promise(() => {});
