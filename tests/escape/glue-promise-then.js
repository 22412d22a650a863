// idea: replace Promise.prototype.then, catch, finally and Promise.resolve
// stops: glue uses captured intrinsics
// expect: value {"n":1}
const then = Promise.prototype.then;
Promise.prototype.catch = () => { throw 1; };
Promise.prototype.finally = () => { throw 1; };
Promise.resolve = () => { throw 1; };
Promise.reject = () => { throw 1; };
const got = await host.echo({ n: 1 });
Promise.prototype.then = then;
return got;
