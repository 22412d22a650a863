// idea: allocate without end: promises
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const p = []; for (;;) p.push(new Promise(() => {}).then(() => {}));
