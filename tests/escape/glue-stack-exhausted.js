// idea: call glue with no stack left, and climb from the error that it throws (vm2: host errors)
// stops: glue throws errors of the guest's own realm
// expect: value true
const caught = [];
function deep() {
  try { deep(); } catch (e) {
    for (const go of [() => host.echo({ a: 1 }), () => console.log({ a: [1] }), () => structuredClone({ a: 1 }), () => new URL("http://a.example/")]) {
      try { go()?.catch?.(() => {}); } catch (inner) { if (caught.length < 200) caught.push(inner); }
    }
    throw e;
  }
}
try { deep(); } catch (e) { caught.push(e); }
const own = caught.every((e) => e instanceof Error && e.constructor.constructor === Function);
return own && caught.every((e) => e.constructor.constructor("return typeof process + typeof require + typeof std")() === "undefinedundefinedundefined");
