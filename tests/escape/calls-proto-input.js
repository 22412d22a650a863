// idea: pollute prototypes through __proto__ keys in both directions
// stops: __proto__ is an ordinary key
// expect: value [true,true]
const sent = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
const got = await host.echo(sent);
return [({}).polluted === undefined, JSON.stringify(got) === JSON.stringify(sent)];
