// idea: issue twenty thousand calls at once
// stops: limit on calls, limit in flight
// expect: value true
// wall: 9000
const settled = await Promise.allSettled(Array.from({ length: 20000 }, (_, i) => host.echo({ i })));
const ok = settled.filter((s) => s.status === "fulfilled").length;
return ok <= 1000 && settled.some((s) => s.reason && s.reason.code === "call_limit");
