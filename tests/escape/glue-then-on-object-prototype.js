// idea: make every object a thenable, so that answers call guest code
// stops: glue uses captured intrinsics
// expect: value "fooled only itself"
Object.prototype.then = function (resolve) { delete Object.prototype.then; resolve("mine"); };
const got = await host.list({});
delete Object.prototype.then;
return got === "mine" || got.list.length === 3 ? "fooled only itself" : "lost";
