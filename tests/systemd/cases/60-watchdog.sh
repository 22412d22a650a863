# A brigd that hangs is restarted; one that works is not.
fresh
may alice
[ "$(systemctl show -P WatchdogUSec brigd.service)" = 1min ] || fail "as packaged it waits $(systemctl show -P WatchdogUSec brigd.service)"
watched
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
pid=$(pid_of)
# Longer than the watchdog waits.
evaluate alice "await new Promise(done => setTimeout(done, $((WATCHDOG + 4)) * 1000))" >/dev/null
[ "$(pid_of)" = "$pid" ] || fail "a brigd that works was restarted"
kill -STOP "$pid"
again() { [ "$(pid_of)" != "$pid" ] && [ "$(systemctl is-active brigd.service)" = active ]; }
until_true 60 again
has "$(journalctl -u brigd.service -n 50 --no-pager)" atchdog
[ "$(evaluate alice 2)" = 2 ] || fail "no answer after the restart"
fresh
