// idea: allocate without end: closures
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const f = []; for (;;) f.push((function () { const x = new Array(100); return () => x; })());
