// idea: read what was in memory before: fresh, grown, sliced and encoded buffers, and the store behind a view (vm2: the shared pool of Buffer)
// stops: buffers begin as zeros and are nobody else's
// expect: value [0,true,true]
let dirty = 0;
const filled = [];
for (let i = 0; i < 64; i += 1) filled.push(new Uint8Array(4096).fill(0xaa), "secret".repeat(500) + i);
filled.length = 0;
const grown = new ArrayBuffer(16, { maxByteLength: 1 << 20 });
grown.resize(1 << 20);
grown.resize(8);
grown.resize(1 << 19);
const fresh = [new Uint8Array(1 << 20), new Uint8Array(grown), new Uint8Array(new ArrayBuffer(1 << 16).transfer(1 << 18)), new Float64Array(5000), new Uint8Array(new ArrayBuffer(100).slice(10)), new BigInt64Array(1000)];
for (let i = 0; i < 200; i += 1) fresh.push(new Uint8Array(1 + i * 37));
for (const one of fresh) for (const byte of new Uint8Array(one.buffer)) if (byte !== 0) dirty += 1;
const views = [new TextEncoder().encode("abc"), structuredClone(new Uint8Array([1, 2, 3])), new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(1))), Uint8Array.from("abc")];
const target = new Uint8Array(8).fill(7);
new TextEncoder().encodeInto("ab", target);
return [dirty, views.every((one) => one.buffer.byteLength === one.byteLength), target.slice(2).every((byte) => byte === 7)];
