# needs: own kernel (pressure, and the controller memory)
# systemd-oomd, which ends a whole cgroup where memory is short, takes another service of the
# same slice before brigd, though more of the trouble is in brigd's.
fresh
may alice
dpkg -i --force-depends /brig/systemd-oomd/*.deb >/dev/null 2>&1 || fail "$(dpkg -l systemd-oomd)"
mkdir -p /etc/systemd/oomd.conf.d
printf '[OOM]\nDefaultMemoryPressureDurationSec=2s\n' >/etc/systemd/oomd.conf.d/quick.conf
systemctl restart systemd-oomd.service
systemctl restart brigd.service
top=/sys/fs/cgroup/brig.slice pid=$(pid_of)
# What systemd-oomd reads.
xattr() { perl -e 'my $value = "\0" x 8; my $length = syscall(191, $ARGV[0], $ARGV[1], $value, 8); print substr($value, 0, $length) if $length > 0' "$1" "$2"; }
[ "$(xattr $top/brigd.service user.oomd_avoid)" = 1 ] || fail "brigd's cgroup is not marked"
# Fills memory that the kernel may take back, piece by piece, which above `MemoryHigh=` it does.
cat >/brig/thrash.pl <<'PERL'
use strict;
my ($pause) = @ARGV;
my ($piece, $pieces) = (1 << 20, 48);
my $at = syscall(9, 0, $piece * $pieces, 3, 0x22, -1, 0);
open(my $zero, '<', '/dev/zero') or die;
my $from = fileno($zero);
for (my $next = 0;; $next = ($next + 1) % $pieces) {
    syscall(0, $from, $at + $next * $piece, $piece);
    syscall(28, $at + $next * $piece, $piece, 8);
    select(undef, undef, undef, $pause) if $pause;
}
PERL
systemd-run --quiet --unit rival -p Slice=brig.slice -p MemoryHigh=8M perl /brig/thrash.pl 0.1
systemctl set-property --runtime brigd.service "MemoryHigh=$(($(cat $top/brigd.service/memory.current) + 8 * 1048576))"
thrashing=()
for _ in 1 2; do
    (echo "$BASHPID" >$top/brigd.service/cgroup.procs && exec perl /brig/thrash.pl 0) &
    thrashing+=($!)
done
scanned() { awk '/^pgscan / {print $2}' "$top/$1.service/memory.stat"; }
both() { echo "rival $(scanned rival), brigd $(scanned brigd)"; [ "$(scanned rival)" -gt 0 ] && [ "$(scanned brigd)" -gt $((2 * $(scanned rival))) ]; }
until_true 10 both
systemctl set-property --runtime brig.slice ManagedOOMMemoryPressure=kill ManagedOOMMemoryPressureLimit=1%
# One of both is ended.
ended() { [ "$(systemctl is-active rival.service || true)" != active ] || [ "$(pid_of)" != "$pid" ]; }
until_true 10 ended
systemctl set-property --runtime brig.slice ManagedOOMMemoryPressure=auto
kill -KILL "${thrashing[@]}" 2>/dev/null || true
has "$(journalctl -u systemd-oomd.service --no-pager -o cat)" 'Killed /brig.slice/'
[ "$(pid_of)" = "$pid" ] || fail "brigd was ended: $(journalctl -u systemd-oomd.service --no-pager -o cat -n 20)"
[ "$(systemctl show -P Result rival.service)" = oom-kill ] || fail "the other ended by $(systemctl show -P Result rival.service)"
[ "$(evaluate alice 2)" = 2 ] || fail "no answer"
systemctl reset-failed rival.service
systemctl stop systemd-oomd.service systemd-oomd.socket
rm -r /etc/systemd/oomd.conf.d
systemctl revert brig.slice brigd.service
fresh
