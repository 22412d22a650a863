// idea: allocate without end: array
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const a = []; for (;;) a.push({ a });
