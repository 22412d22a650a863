# The sockets by themselves: how many may wait while brigd is not there yet, what is started
# and stopped with what, and what is made when nothing is there.
fresh
may alice
# More than the units ask for, so that it is theirs that counts.
sysctl -qw net.core.somaxconn=8192
systemctl stop brigd.socket brigd-admin.socket brigd.service 2>/dev/null
rm -rf /run/brig
systemctl start brigd.socket brigd-admin.socket
[ "$(stat -c '%a %U %G' /run/brig)" = '755 root root' ] || fail "the folder: $(stat -c '%a %U %G' /run/brig)"
# Connects until no more may wait, says how many do, and keeps them until its input ends.
cat >/brig/burst.pl <<'PERL'
use strict;
use Socket qw(:DEFAULT SOCK_NONBLOCK);
$| = 1;
my (@all, @counts);
for my $path (@ARGV) {
    my $count = 0;
    for (;;) {
        socket(my $one, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0) or die "socket: $!";
        connect($one, pack_sockaddr_un($path)) or last;
        push @all, $one;
        $count++;
    }
    push @counts, $count;
}
print "@counts\n";
<STDIN>;
PERL
# brigd is held back until it is let go.
mkfifo /brig/held
printf '[Service]\nTimeoutStartSec=600s\nExecStartPre=/bin/sh -c "read line </brig/held"\n' | dropin held
ulimit -n 16384
evaluate alice 1 >/brig/answer 2>&1 &
client=$!
activating() { [ "$(systemctl is-active brigd.service)" = activating ]; }
until_true 10 activating
coproc BURST { exec perl /brig/burst.pl /run/brig/brig.sock /run/brig/admin.sock 2>&1; }
read -r waiting <&"${BURST[0]}"
# Besides her, and the kernel takes one more than it is told.
[ "$waiting" = '4096 65' ] || fail "there wait $waiting"
activating || fail "brigd is $(systemctl is-active brigd.service)"
echo >/brig/held
wait $client || fail "$(cat /brig/answer)"
[ "$(cat /brig/answer)" = 1 ] || fail "$(cat /brig/answer)"
exec {BURST[1]}>&-
systemctl stop brigd-admin.socket brigd.service 2>/dev/null
rm -r /brig/held /etc/systemd/system/brigd.service.d/held.conf
systemctl daemon-reload
# brigd is never there without its socket: it is started with it, and stopped with it.
systemctl stop brigd.socket
systemctl start brigd.service
[ "$(systemctl is-active brigd.socket)" = active ] || fail "a start of brigd leaves its socket $(systemctl is-active brigd.socket)"
[ "$(evaluate alice 2)" = 2 ] || fail "no answer"
systemctl stop brigd.socket
[ "$(systemctl is-active brigd.service || true)" = inactive ] || fail "brigd is $(systemctl is-active brigd.service) without its socket"
[ ! -e /run/brig/brig.sock ] || fail "the socket is left where nobody listens"
has " $(systemctl show -P After brigd.service) " ' brigd.socket '
fresh
