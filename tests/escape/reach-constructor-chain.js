// idea: climb from any value to Function and look for a process
// stops: fresh realm, no host objects
// expect: value ["undefined","undefined","undefined","undefined"]
const F = host.echo.constructor.constructor;
return [F("return typeof process")(), F("return typeof require")(), F("return typeof std")(), F("return typeof os")()];
