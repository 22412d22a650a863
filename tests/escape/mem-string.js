// idea: allocate without end: string
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
let s = "x"; for (;;) s += s + "y";
