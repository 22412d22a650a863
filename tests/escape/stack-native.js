// idea: recurse through natives: JSON, replace, getters, proxies, toString
// stops: engine's stack limit, guard page
// expect: code worker_crashed|guest_error|stack_limit|unserializable_value|memory_limit|timed_out
const deep = (n) => { let o = {}; for (let i = 0; i < n; i++) o = { o }; return o; };
let p = {}; for (let i = 0; i < 20000; i++) p = new Proxy(p, {});
try { p.x; } catch {}
const f = () => "a".replace(/a/, f);
try { f(); } catch {}
return deep(300000);
