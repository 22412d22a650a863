// idea: build a timer from shared memory
// stops: no SharedArrayBuffer, no Atomics
// expect: value ["undefined","undefined"]
return [typeof SharedArrayBuffer, typeof Atomics];
