// idea: allocate without end: host-calls
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit|call_limit
// wall: 8000
const big = 'x'.repeat(500000); const p = []; for (;;) { p.push(host.echo({ big })); if (p.length % 10 === 0) await p[p.length - 1]; }
