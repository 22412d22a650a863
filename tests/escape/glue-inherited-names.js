// idea: call constructor, toString, __proto__ and then as if they were host functions
// stops: no prototype behind a collection
// expect: value true
const out = [];
for (const name of ["constructor", "toString", "__proto__", "then", "valueOf", "hasOwnProperty"]) {
  const f = host[name];
  out.push(f === undefined || f === null || typeof f !== "function" || !Object.prototype.hasOwnProperty.call(host, name));
}
await host;
return out.every(Boolean);
