// idea: replace the array methods and iterators that glue might use
// stops: glue uses captured intrinsics
// expect: value {"list":[1,2,3],"a":{"b":1}}
for (const name of Object.getOwnPropertyNames(Array.prototype)) {
  if (typeof Array.prototype[name] === "function" && name !== "constructor") Array.prototype[name] = () => { throw new Error("trap " + name); };
}
Array.prototype[Symbol.iterator] = function* () { yield "evil"; };
return await host.list({});
