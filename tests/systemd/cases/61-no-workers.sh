# A brigd that answers but can make no worker any more is restarted: the watchdog is fed by
# evaluations, not by a timer.
fresh
may alice
watched
pid=$(pid_of)
# Its nursery and workers hang; brigd itself goes on.
pkill -STOP -x brig-worker
# What brigd starts instead is stopped as well, until another brigd is there.
again() {
    if [ "$(pid_of)" = "$pid" ]; then pkill -STOP -x brig-worker; return 1; fi
    [ "$(systemctl is-active brigd.service)" = active ]
}
until_true 60 again
has "$(journalctl -u brigd.service -n 200 --no-pager)" 'not fed'
[ "$(evaluate alice 2)" = 2 ] || fail "no answer after the restart"
fresh
