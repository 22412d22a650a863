// idea: make a guest error look like one of the host's or of brigd
// stops: codes come from what the supervisor knows
// expect: code guest_error
class HostError extends Error {}
const e = new HostError("memory_limit");
e.code = "permission_denied"; e.name = "HostError"; e.outcome = "succeeded";
throw e;
