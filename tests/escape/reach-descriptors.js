// idea: take functions and symbols of the glue from property descriptors of what it made (vm2: descriptors, symbols across realms)
// stops: nothing of the bridge is a property
// expect: value []
const failed = await host.fail({}).catch((e) => e);
const strange = [];
for (const [name, one] of Object.entries({ host, echo: host.echo, promise: host.echo({}), failed, answered: await host.list({}), inputs })) {
  for (const key of Reflect.ownKeys(one)) {
    const { get, set, value } = Object.getOwnPropertyDescriptor(one, key);
    if (get || set) strange.push(`${name}.${String(key)} is an accessor`);
    if (typeof key === "symbol" && key !== Symbol.toStringTag) strange.push(`${name} has ${String(key)}`);
    if (typeof value === "function" && name !== "host") strange.push(`${name}.${String(key)} is a function`);
    if (typeof value === "function" && /\[native code\]/.test(Function.prototype.toString.call(value)) === false) strange.push(`${name}.${String(key)} shows its source`);
  }
}
for (const word of ["nodejs.util.inspect.custom", "nodejs.util.promisify.custom", "nodejs.rejection", "brig"]) {
  if (Object.getOwnPropertySymbols(globalThis).includes(Symbol.for(word))) strange.push(word);
}
return strange;
