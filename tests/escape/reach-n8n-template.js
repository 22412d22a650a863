// idea: the same past a filter of names, by template literals
// stops: fresh realm, no host objects
// expect: value "undefined"
return ({})[`const${"ructor"}`][`const${"ructor"}`](`return typeof proc${"ess"}`)();
