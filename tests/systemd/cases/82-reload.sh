# A reload takes over who may what, and a faulty configuration changes nothing.
fresh
may alice
id bob >/dev/null 2>&1 || useradd -m -G brig bob
if [ "$(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p')" -ge 253 ]; then
    dropin reload </usr/share/doc/brig/examples/notify-reload.conf
    [ "$(systemctl show -P Type brigd.service)" = notify-reload ] || fail "the drop-in does not hold"
fi
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
pid=$(pid_of)
said=$(evaluate bob --json 1 2>&1) && fail "bob may evaluate"
evaluate alice --json 'await new Promise(done => setTimeout(done, 4000)); "through the reload"' >/brig/running 2>&1 &
running=$!
may alice bob
systemctl reload brigd.service
bob_may() { [ "$(evaluate bob 2)" = 2 ]; }
until_true 10 bob_may
echo '[clients]' >>/etc/brig/brig.toml
echo nonsense >>/etc/brig/brig.toml
systemctl reload brigd.service || true
refused() { has "$(journalctl -u brigd.service -n 20 --no-pager)" 'was not reloaded'; }
until_true 10 refused
bob_may || fail "the faulty configuration took something away"
wait $running || fail "$(cat /brig/running)"
has "$(cat /brig/running)" 'through the reload'
[ "$(pid_of)" = "$pid" ] || fail "it was restarted"
[ "$(systemctl is-active brigd.service)" = active ] || fail "it is $(systemctl is-active brigd.service)"
fresh
