# The first client starts brigd, as its own user, and `systemctl status` says how it is.
install_brig
may alice
systemctl stop brigd.service
[ "$(systemctl is-active brigd.service || true)" = inactive ] || fail "it runs"
[ "$(evaluate alice 6*7)" = 42 ] || fail "no answer"
[ "$(systemctl is-active brigd.service)" = active ] || fail "it does not run"
pid=$(pid_of)
[ "$(stat -c %U "/proc/$pid")" = root ] || [ "$(stat -c %U "/proc/$pid")" = brigd ] || fail "user"
has "$(cat "/proc/$pid/status")" "Uid:	$(id -u brigd)	$(id -u brigd)"
has "$(cat "/proc/$pid/status")" "Gid:	$(getent group brigd | cut -d: -f3)	$(getent group brigd | cut -d: -f3)"
[ "$(systemctl show -P Type brigd.service) $(systemctl show -P NotifyAccess brigd.service)" = 'notify main' ] || fail "$(systemctl show -p Type,NotifyAccess brigd.service)"
has "$(cat "/proc/$pid/cgroup")" /brig.slice/brigd.service
idle() { has "$(systemctl show -P StatusText brigd.service)" 'level strong; workers 8 ready, 0 in use; evaluations 0 running, 0 waiting'; }
until_true 20 idle
evaluate alice 'await new Promise(done => setTimeout(done, 8000))' >/dev/null &
busy() { has "$(systemctl show -P StatusText brigd.service)" '1 in use; evaluations 1 running'; }
until_true 7 busy
wait $!
until_true 20 idle
