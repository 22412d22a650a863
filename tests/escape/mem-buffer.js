// idea: allocate without end: buffer
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const b = []; for (;;) b.push(new Uint8Array(1 << 20).fill(1));
