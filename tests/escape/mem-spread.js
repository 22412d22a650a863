// idea: make a list of millions out of a text that is within the limit, in single native steps that no limit between steps sees (isolated-vm: spread, split, fill, a large BigInt)
// stops: counting allocator
// expect: code memory_limit|timed_out|cpu_limit
// wall: 4000
const long = "1".repeat(2 ** 23);
const kept = [BigInt(long.slice(0, 2 ** 14)), new Array(2 ** 18).fill({}), long.slice(0, 2 ** 18).split(""), structuredClone([long.slice(0, 2 ** 20)])];
return [...long, ...Array.from(long), ...[].slice.call(long), ...long.match(/1/g), ...kept].length;
