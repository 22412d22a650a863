# Upgrade, removal, installation again, purge.
fresh
may alice
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
touch /var/lib/brig/kept
pid=$(pid_of)
evaluate alice --json 'await new Promise(done => setTimeout(done, 6000)); "through the upgrade"' >/brig/running 2>&1 &
running=$!
busy() { has "$(systemctl show -P StatusText brigd.service)" '1 running'; }
until_true 10 busy
# The same version again goes through the same scripts as another.
dpkg -i /brig/brig.deb >/dev/null
wait $running || fail "what ran: $(cat /brig/running)"
has "$(cat /brig/running)" 'through the upgrade'
[ "$(pid_of)" != "$pid" ] || fail "the old brigd still runs"
grep -q uids /etc/brig/brig.toml || fail "the configuration was overwritten"
[ "$(evaluate alice 2)" = 2 ] || fail "no answer after the upgrade"
# What an operator switched off stays off.
systemctl disable --now brigd.socket >/dev/null 2>&1
dpkg -i /brig/brig.deb >/dev/null
[ "$(systemctl is-enabled brigd.socket || true)" = disabled ] || fail "an upgrade switched the socket on"
systemctl enable --now brigd.socket >/dev/null 2>&1
[ "$(evaluate alice 3)" = 3 ] || fail "no answer"
dpkg --remove brig >/dev/null
[ -e /var/lib/brig/kept ] && [ -e /etc/brig/brig.toml ] || fail "removal took state or configuration"
[ "$(pgrep -u brigd || true)" = '' ] || fail "something still runs"
[ ! -e /run/brig/brig.sock ] || fail "the socket is left"
dpkg -i /brig/brig.deb >/dev/null
[ "$(evaluate alice 4)" = 4 ] || fail "no answer after it was installed again"
# What an operator enabled goes too.
systemctl enable brigd-admin.socket >/dev/null 2>&1
dpkg --purge brig >/dev/null
[ ! -e /var/lib/brig ] && [ ! -e /etc/brig ] && [ ! -e /run/brig ] || fail "purge left: $(ls -d /var/lib/brig /etc/brig /run/brig)"
[ -z "$(find /etc/systemd /usr/lib/systemd /var/lib/systemd -name '*brig*' ! -name 'brig-cases*')" ] || fail "units are left: $(find /etc/systemd /usr/lib/systemd /var/lib/systemd -name '*brig*')"
dpkg -i /brig/brig.deb >/dev/null
