// idea: replace JSON.stringify and JSON.parse around a host call
// stops: glue uses captured intrinsics
// expect: value {"got":{"n":1},"seen":0}
let seen = 0;
JSON.stringify = () => { seen++; return '{"n":666}'; };
JSON.parse = () => { seen++; return { n: 666 }; };
const got = await host.echo({ n: 1 });
return { got, seen };
