// idea: load a module of the engine or of a file system
// stops: no module loader
// expect: value [true,true,true]
const tries = [];
for (const name of ["fs", "qjs:std", "./x.js"]) {
  try { await (0, eval)(`import(${JSON.stringify(name)})`); tries.push(false); } catch { tries.push(true); }
}
return tries;
