// idea: call a host function a million times
// stops: call limit
// expect: code guest_error|call_limit|timed_out
for (let i = 0; i < 1e6; i++) await host.echo({ i });
