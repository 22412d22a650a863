// idea: run out of memory inside of the engine's compiler, whose own ways out of that are not safe (QuickJS under a memory limit: assertions and wild reads while it parses)
// stops: counting allocator
// expect: code memory_limit|guest_error|timed_out|cpu_limit
// limits: {"heapBytes": 8388608}
// wall: 8000
const kept = [];
for (let i = 1; ; i = i * 2 % 65521) {
  const parts = Array.from({ length: 400 }, (_, n) => `function f${n}(a, b = ${i}, ...c) { with_${n}: for (let x${n} of [a, b, \`\${c}${n}\`]) { try { yield_${n} = class { #p = x${n}; static { this.q = /a{${n}}/; } }; } catch { continue with_${n}; } } }`);
  kept.push(new Function(parts.join("\n")), (0, eval)(`({ ${parts.map((part, n) => `m${n}() { ${part} }`).join(",")} })`));
}
