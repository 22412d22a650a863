// idea: change, delete or replace a collection and its functions
// stops: frozen globals
// expect: value [false,false,false,"function",true]
"use strict";
const attempt = (f) => { try { return f() !== false && false; } catch { return false; } };
const r = [attempt(() => Reflect.set(host, "echo", 1)), attempt(() => Reflect.deleteProperty(host, "echo")), attempt(() => Reflect.defineProperty(host, "evil", { value: 1 }))];
return [...r, typeof host.echo, Object.isFrozen(host) && Object.isFrozen(host.echo) !== undefined];
