# A brigd that is killed takes everything below it with it, and is there again.
fresh
may alice
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
[ "$(systemctl show -P RestartUSec brigd.service)" = 1s ] || fail "it is restarted after $(systemctl show -P RestartUSec brigd.service)"
pid=$(pid_of)
workers=$(workers | tr '\n' ' ')
kill -KILL "$pid"
again() { [ "$(pid_of)" != 0 ] && [ "$(pid_of)" != "$pid" ] && [ "$(systemctl is-active brigd.service)" = active ]; }
until_true 30 again
for worker in $workers; do [ ! -e "/proc/$worker" ] || ! grep -q brig-worker "/proc/$worker/cmdline" || fail "worker $worker outlived its brigd"; done
[ "$(evaluate alice 2)" = 2 ] || fail "no answer after the crash"
# One worker that dies costs its evaluation only.
evaluate alice --json 'await new Promise(done => setTimeout(done, 20000))' >/brig/victim 2>&1 &
victim=$!
running() { has "$(systemctl show -P StatusText brigd.service)" '1 running'; }
until_true 10 running
# The busy one is not to be told from outside: all go.
pid=$(pid_of)
pkill -KILL -x brig-worker
wait $victim && fail "it survived"
has "$(cat /brig/victim)" worker_crashed
[ "$(pid_of)" = "$pid" ] || fail "brigd went with its worker"
[ "$(evaluate alice 3)" = 3 ] || fail "no answer after the workers died"
