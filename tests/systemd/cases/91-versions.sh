# From one version to the next and back: what runs ends honestly, what was set stays, and
# nothing waits for somebody at a keyboard.
fresh
id alice >/dev/null 2>&1 || useradd -m -G brig alice
dpkg --purge brig >/dev/null 2>&1 || true
dpkg -i /brig/brig.deb >/dev/null
version() { dpkg-query -W -f '${Version}' brig; }
old=$(version)
# What is set is in conf.d, and brig.toml as it came.
printf '[clients]\nuids = [%s]\n[server]\ndrain_ms = 3000\n' "$(id -u alice)" >/etc/brig/conf.d/site.toml
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
pid=$(pid_of)
evaluate alice --json 'await new Promise(done => setTimeout(done, 1500)); "through the upgrade"' >/brig/short 2>&1 &
short=$!
evaluate alice --json 'await new Promise(done => setTimeout(done, 25000)); "late"' >/brig/long 2>&1 &
long=$!
two() { has "$(systemctl show -P StatusText brigd.service)" '2 running'; }
until_true 10 two
said=$(timeout 120 dpkg -i /brig/newer.deb 2>&1 </dev/null) || fail "$said"
[ "$(version)" != "$old" ] || fail "it is still $old"
wait $short || fail "$(cat /brig/short)"
has "$(cat /brig/short)" 'through the upgrade'
wait $long && fail "the long one succeeded"
has "$(cat /brig/long)" '"cancelled"'
has "$(cat /brig/long)" shut
[ "$(pid_of)" != "$pid" ] || fail "the old brigd still runs"
[ "$(evaluate alice 2)" = 2 ] || fail "no answer after the upgrade"
grep -q 'of the newer version' /etc/brig/brig.toml || fail "the shipped file was not replaced"
grep -q drain_ms /etc/brig/conf.d/site.toml || fail "what was set is gone"
# Back again: files of the older, the service lives on.
said=$(timeout 120 dpkg -i /brig/brig.deb 2>&1 </dev/null) || fail "$said"
[ "$(version)" = "$old" ] || fail "it is $(version)"
[ "$(evaluate alice 3)" = 3 ] || fail "no answer after the way back"
# A brig.toml that was changed: kept without a question where dpkg is told so, as
# unattended upgrades do, and never a wait without end where nobody can answer.
echo '# ours' >>/etc/brig/brig.toml
said=$(timeout 120 dpkg --force-confdef --force-confold -i /brig/newer.deb 2>&1 </dev/null) || fail "$said"
grep -q '# ours' /etc/brig/brig.toml || fail "it was overwritten"
[ -e /etc/brig/brig.toml.dpkg-dist ] || fail "what the package brings is not beside it"
[ "$(evaluate alice 4)" = 4 ] || fail "no answer"
dpkg --purge brig >/dev/null
[ ! -e /etc/brig ] && [ ! -e /var/lib/brig ] || fail "purge left $(ls -d /etc/brig /var/lib/brig)"
dpkg -i /brig/brig.deb >/dev/null
