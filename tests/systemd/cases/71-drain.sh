# A stop lets what runs end, and tells clients what it does not let end.
fresh
may alice
printf '[server]\ndrain_ms = 8000\n' >>/etc/brig/brig.toml
systemctl restart brigd.service
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
# Where brigd itself does not end, systemd ends it; longer than it takes to drain.
[ "$(systemctl show -P TimeoutStartUSec brigd.service) $(systemctl show -P TimeoutStopUSec brigd.service)" = '1min 40s' ] || fail "$(systemctl show -p TimeoutStartUSec,TimeoutStopUSec brigd.service)"
evaluate alice --json 'await new Promise(done => setTimeout(done, 4000)); "in time"' >/brig/short 2>&1 &
short=$!
evaluate alice --json 'await new Promise(done => setTimeout(done, 25000)); "late"' >/brig/long 2>&1 &
long=$!
two() { has "$(systemctl show -P StatusText brigd.service)" '2 running'; }
until_true 10 two
begun=$SECONDS
systemctl stop brigd.service
[ $((SECONDS - begun)) -lt 25 ] || fail "the stop took $((SECONDS - begun)) s"
wait $short || fail "$(cat /brig/short)"
has "$(cat /brig/short)" 'in time'
wait $long && fail "the long one succeeded"
has "$(cat /brig/long)" '"cancelled"'
has "$(cat /brig/long)" 'shut'
[ "$(systemctl show -P Result brigd.service)" = success ] || fail "the stop was not clean"
fresh
