# needs: own kernel (a host whose memory may run out)
# Memory that runs out on the host, by somebody else's doing, costs evaluations, which are told
# so, and never brigd.
fresh
may alice bob
[ "$(evaluate bob 1)" = 1 ] || fail "no answer"
pid=$(pid_of) slice=/sys/fs/cgroup/brig.slice
before=$(systemctl show -P NRestarts brigd.service)
# count EVENT: how often, since the slice was made.
count() { awk -v event="$1" '$1 == event {print $2}' $slice/memory.events; }
killed_before=$(count oom_kill) max_before=$(count max)
# Takes all but so many KiB of the host's memory, keeps it until its input ends, and would be
# the last that the kernel ends.
cat >/brig/hog.pl <<'PERL'
use strict;
my ($left) = @ARGV;
my @all;
sub available { open(my $file, '<', '/proc/meminfo') or die; my ($line) = grep { /^MemAvailable/ } <$file>; return $line =~ /(\d+)/ && $1 }
while (available() > $left) { push @all, 'x' x (4 << 20) }
$| = 1;
print "full\n";
<STDIN>;
PERL
coproc HOG { echo -900 >/proc/self/oom_score_adj; exec perl /brig/hog.pl 49152; }
hog=$HOG_PID
read -r said <&"${HOG[0]}"
[ "$said" = full ] || fail "$said"
full='const all = new Uint8Array(48 << 20).fill(1); await new Promise(done => setTimeout(done, 12000)); all.length'
clients=() ended=0
for number in 1 2 3 4; do
    evaluate alice --json "$full" >"/brig/full.$number" 2>&1 &
    clients+=($!)
done
killed() { [ "$(count oom_kill)" -gt "$killed_before" ]; }
until_true 10 killed
# It was no limit of brig's own.
[ "$(count max)" = "$max_before" ] || fail "$(cat $slice/memory.events)"
# Meanwhile another client is served.
[ "$(evaluate bob 2)" = 2 ] || fail "another client was hit"
for client in "${clients[@]}"; do wait "$client" || ended=$((ended + 1)); done
for number in 1 2 3 4; do
    if grep -q '"succeeded"' "/brig/full.$number"; then continue; fi
    has "$(cat "/brig/full.$number")" '"memory_limit"'
    has "$(cat "/brig/full.$number")" 'on the host'
done
[ $ended -ge 1 ] || fail "none of four was ended"
echo "note: $ended of four were told memory_limit"
[ -e "/proc/$hog" ] || fail "the memory was not held to the end"
[ "$(pid_of)" = "$pid" ] && [ "$(systemctl show -P NRestarts brigd.service)" = "$before" ] || fail "brigd was restarted"
exec {HOG[1]}>&-
[ "$(evaluate bob 3)" = 3 ] || fail "no answer afterwards"
fresh
