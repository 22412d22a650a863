// idea: allocate without end: regexp
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const r = []; for (let i = 0; ; i++) r.push(new RegExp('a{' + (i % 200) + '}b' + i));
