// idea: allocate without end: map
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const m = new Map(); for (let i = 0; ; i++) m.set({ i }, i);
