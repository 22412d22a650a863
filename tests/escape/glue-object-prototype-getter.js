// idea: a getter and setter on Object.prototype for every name that glue reads or writes
// stops: glue uses captured intrinsics
// expect: value [{"n":1},0]
let touched = 0;
for (const name of ["id", "method", "params", "result", "error", "function", "input", "code", "message", "name", "data", "resolve", "reject", "toJSON", "value", "jsonrpc"]) {
  // A descriptor without a prototype: `value` is among the names.
  const descriptor = Object.assign(Object.create(null), { configurable: true, get() { touched++; return undefined; }, set() { touched++; } });
  Object.defineProperty(Object.prototype, name, descriptor);
}
const got = await host.echo({ n: 1 });
for (const name of Object.getOwnPropertyNames(Object.prototype)) { if (Object.getOwnPropertyDescriptor(Object.prototype, name).get && name !== "__proto__") delete Object.prototype[name]; }
return [got, touched > 100 ? touched : 0];
