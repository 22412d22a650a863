// idea: reach child_process through mainModule
// stops: no process object
// expect: value "ReferenceError"
try { return process.mainModule.require("child_process").execSync("id").toString(); } catch (e) { return e.name; }
