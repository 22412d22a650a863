// idea: print without end
// stops: bounded console
// expect: code timed_out|cpu_limit|output_limit
// wall: 1500
for (;;) console.log("x".repeat(10000));
