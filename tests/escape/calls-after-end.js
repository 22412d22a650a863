// idea: issue calls from a timer and from promises after the value is ready
// stops: drain, then cancel
// expect: value 5
setTimeout(() => { for (let i = 0; i < 10; i++) host.echo({ i }); }, 0);
host.echo({ late: 1 }).then(() => host.echo({ later: 1 }));
return 5;
