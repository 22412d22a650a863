// idea: allocate without end: symbols
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const o = {}; for (let i = 0; ; i++) o['p' + i] = Symbol(i);
