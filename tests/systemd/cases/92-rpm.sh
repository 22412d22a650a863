# The other package under the tool of its kind: installed, upgraded, erased, and put into
# a root where no systemd runs, it does what the deb does.
fresh
dpkg --purge brig >/dev/null 2>&1
userdel brigd
groupdel brig
! getent group brigd >/dev/null || groupdel brigd
dpkg -i --force-depends /brig/rpm/*.deb >/dev/null 2>&1 || fail "$(dpkg -l rpm)"
# Its database knows none of what Debian's has installed.
force=
# Debian 12's asks for it.
! rpm --force-debian --version >/dev/null 2>&1 || force=--force-debian
# shellcheck disable=SC2086 # none or one
foreign() { rpm $force --nodeps "$@"; }
may_alice() { id alice >/dev/null 2>&1 || useradd -m alice; usermod -a -G brig alice; printf '[clients]\nuids = [%s]\n' "$(id -u alice)"; }
socket() { echo "$(systemctl is-enabled brigd.socket || true) $(systemctl is-active brigd.socket || true)"; }
# A fresh installation listens, and grants nothing to anybody.
said=$(foreign -i /brig/brig.rpm 2>&1) || fail "$said"
getent passwd brigd | grep -q nologin || fail "user brigd"
getent group brig >/dev/null || fail "group brig"
[ "$(socket)" = 'enabled active' ] || fail "the socket is $(socket)"
[ "$(systemctl is-enabled brigd.service || true) $(systemctl is-enabled brigd-admin.socket || true)" = 'indirect disabled' ] || fail "more than the socket is enabled"
[ "$(stat -c '%a %U %G' /run/brig/brig.sock)" = '660 root brig' ] || fail "socket: $(stat -c '%a %U %G' /run/brig/brig.sock)"
[ "$(stat -c '%a %U' /etc/brig/credentials)" = '700 root' ] || fail "the folder of credentials"
[ -z "$(grep -v '^ *\(#\|$\)' /etc/brig/brig.toml)" ] || fail "brig.toml sets something"
# Files, modes and owners are those of the package.
[ -z "$(rpm -V --nodeps brig)" ] || fail "$(rpm -V --nodeps brig)"
owners=$(rpm -q --queryformat '[%{FILEUSERNAME} %{FILEGROUPNAME}\n]' brig | sort -u)
[ "$owners" = 'root root' ] || fail "files of $owners"
[ -z "$(rpm -ql brig | xargs -d '\n' -I{} find {} -maxdepth 0 -perm /6022 ! -type l)" ] || fail "a file that others may change"
[ "$(brig --socket /run/brig/brig.sock eval 1+1)" = 2 ] || fail "root may not"
id=$(id -u brigd)
# An upgrade: what runs is answered, who connects waits, what was set stays.
may_alice >/etc/brig/conf.d/site.toml
systemctl reload brigd.service
touch /var/lib/brig/kept
pid=$(pid_of)
inode=$(stat -c %i /run/brig/brig.sock)
evaluate alice --json 'await new Promise(done => setTimeout(done, 4000)); "through the upgrade"' >/brig/running 2>&1 &
running=$!
busy() { has "$(systemctl show -P StatusText brigd.service)" '1 running'; }
until_true 10 busy
said=$(foreign -U /brig/newer.rpm 2>&1) || fail "$said"
wait $running || fail "what ran: $(cat /brig/running)"
has "$(cat /brig/running)" 'through the upgrade'
[ "$(pid_of)" != "$pid" ] || fail "the old brigd still runs"
[ "$(socket)" = 'enabled active' ] && [ "$(stat -c %i /run/brig/brig.sock)" = "$inode" ] || fail "the socket was stopped"
[ "$(evaluate alice 2)" = 2 ] || fail "no answer after the upgrade"
grep -q 'of the newer version' /etc/brig/brig.toml || fail "a file that nobody changed was not replaced"
[ -e /var/lib/brig/kept ] && [ "$(id -u brigd)" = "$id" ] || fail "state or user is another"
[ -z "$(rpm -V --nodeps brig)" ] || fail "$(rpm -V --nodeps brig)"
# Back, over a file that was changed: kept, the package's beside it.
echo '# ours' >>/etc/brig/brig.toml
said=$(foreign -U --oldpackage /brig/brig.rpm 2>&1) || fail "$said"
grep -q '# ours' /etc/brig/brig.toml || fail "it was overwritten"
[ -e /etc/brig/brig.toml.rpmnew ] || fail "what the package brings is not beside it: $(ls /etc/brig)"
[ "$(evaluate alice 3)" = 3 ] || fail "no answer after the way back"
# What an operator switched off stays off.
systemctl disable --now brigd.socket brigd.service >/dev/null 2>&1
foreign -U /brig/newer.rpm >/dev/null
[ "$(socket)" = 'disabled inactive' ] || fail "an upgrade switched the socket on: $(socket)"
[ "$(systemctl is-active brigd.service || true)" = inactive ] || fail "an upgrade started brigd"
systemctl enable --now brigd.socket >/dev/null 2>&1
[ "$(evaluate alice 4)" = 4 ] || fail "no answer"
# Erased: nothing runs or listens or is enabled, state and what was set are kept.
systemctl enable brigd-admin.socket >/dev/null 2>&1
said=$(foreign -e brig 2>&1) || fail "$said"
[ "$(pgrep -u brigd || true)" = '' ] || fail "something still runs"
[ ! -e /run/brig/brig.sock ] || fail "the socket is left"
[ -z "$(find /etc/systemd /usr/lib/systemd -name '*brig*' ! -name 'brig-cases*')" ] || fail "units are left: $(find /etc/systemd /usr/lib/systemd -name '*brig*')"
[ -z "$(systemctl list-units --all --plain --no-legend 'brigd*')" ] || fail "$(systemctl list-units --all 'brigd*')"
[ -e /var/lib/brig/kept ] && [ -e /etc/brig/conf.d/site.toml ] || fail "erasing took state or configuration"
grep -q '# ours' /etc/brig/brig.toml.rpmsave || fail "the changed brig.toml is gone: $(ls /etc/brig)"
# Into a root where no systemd runs, as an image is made: the socket is on at the first boot.
unshare --mount sh -c "mount -t tmpfs tmpfs /run/systemd && exec rpm $force --nodeps -i /brig/brig.rpm" >/brig/offline 2>&1 || fail "$(cat /brig/offline)"
[ "$(systemctl is-enabled brigd.socket)" = enabled ] || fail "not enabled without a running systemd: $(cat /brig/offline)"
[ "$(systemctl is-active brigd.socket || true)" = inactive ] || fail "started without a running systemd"
[ -z "$(rpm -V --nodeps brig)" ] || fail "$(rpm -V --nodeps brig)"
systemctl daemon-reload
systemctl start brigd.socket
[ "$(evaluate alice 5)" = 5 ] || fail "no answer"
unshare --mount sh -c "mount -t tmpfs tmpfs /run/systemd && exec rpm $force --nodeps -e brig" >/brig/offline 2>&1 || fail "$(cat /brig/offline)"
[ ! -e /etc/systemd/system/sockets.target.wants/brigd.socket ] || fail "still enabled without the package"
systemctl daemon-reload
systemctl stop brigd.socket brigd.service 2>/dev/null || true
rm -rf /etc/brig /var/lib/brig
dpkg -i /brig/brig.deb >/dev/null
