// idea: look for anything of the bridge among all properties of all globals
// stops: nothing of the bridge is a property
// expect: value []
const found = [], seen = new Set();
const walk = (o, path, depth) => {
  if ((typeof o !== "object" && typeof o !== "function") || o === null || seen.has(o) || depth > 4) return;
  seen.add(o);
  for (const key of Reflect.ownKeys(o)) {
    const name = path + "." + String(key);
    if (/bridge|brig|__|pending|channel|hostCall|native/i.test(String(key)) && !/^__(proto|defineGetter|defineSetter|lookupGetter|lookupSetter)__$/.test(String(key))) found.push(name);
    const d = Reflect.getOwnPropertyDescriptor(o, key);
    if (d && "value" in d) walk(d.value, name, depth + 1);
  }
  walk(Reflect.getPrototypeOf(o), path + ".[[Prototype]]", depth + 1);
};
walk(globalThis, "globalThis", 0);
return found;
