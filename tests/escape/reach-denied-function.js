// idea: call a denied function by every spelling
// stops: permission is decided in the supervisor for each call
// expect: value true
const tries = ["secret", "Secret", "SECRET", "s\u0065cret"];
let out = [];
for (const name of tries) { try { out.push(await host[name]({})); } catch (e) { out.push(e.name + ":" + (e.code || "")); } }
try { out.push(await Reflect.get(host, "secret").call(null, {})); } catch (e) { out.push(e.name); }
return out.every((o) => typeof o === "string" && !o.includes("hunter"));
