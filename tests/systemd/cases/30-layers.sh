# Every layer of the unit and of a worker, read from inside and from the kernel.
install_brig
may alice
systemctl restart brigd.service
layers=$(evaluate alice --json 1)
for layer in seccomp no_new_privs no_capabilities landlock rlimits cpu_timer descriptors not_dumpable parent_death; do has "$layers" "\"$layer\""; done
has "$layers" '"level":"strong"'
hasnt "$layers" user_namespace
pid=$(pid_of)
status=$(cat "/proc/$pid/status")
for fact in 'NoNewPrivs:	1' 'Seccomp:	2' 'CapEff:	0000000000000000' 'CapBnd:	0000000000000000' 'CapPrm:	0000000000000000'; do has "$status" "$fact"; done
in_unit() { nsenter -t "$pid" -m -- "$@"; }
for place in /usr/x /etc/x /var/x /opt/x; do
    said=$(in_unit touch "$place" 2>&1) && fail "brigd's namespace can write $place"
    has "$said" Read-only
done
in_unit touch /var/lib/brig/x && in_unit rm /var/lib/brig/x
[ -z "$(in_unit ls -A /home /root 2>/dev/null | grep -v ':$' | grep . || true)" ] || fail "homes are to be seen"
[ -z "$(in_unit ls /dev | grep -E '^(sd|vd|mem$|kmsg$|ttyS)' || true)" ] || fail "devices are to be seen"
[ -z "$(in_unit ls -A /tmp)" ] || fail "/tmp is shared"
in_unit ls /proc/sys >/dev/null 2>&1 && fail "/proc/sys is to be seen"
for kind in net mnt ipc uts; do
    [ "$(readlink "/proc/$pid/ns/$kind")" != "$(readlink "/proc/1/ns/$kind")" ] || fail "namespace $kind is the host's"
done
[ "$(readlink "/proc/$pid/ns/user")" = "$(readlink /proc/1/ns/user)" ] || fail "in a user namespace no client has an identity"
[ "$(nsenter -t "$pid" -n cat /proc/net/dev | grep -c :)" = 1 ] || fail "there is a network"
grep -q '^Max core file size *0 *0' "/proc/$pid/limits" || fail "core dumps"
# A worker, as the kernel sees it while its program runs.
evaluate alice 'await new Promise(done => setTimeout(done, 3000))' >/dev/null &
found=0
for worker in $(cat /sys/fs/cgroup/brig.slice/brigd.service/cgroup.procs 2>/dev/null || pgrep -u brigd); do
    [ "$worker" != "$pid" ] || continue
    # One that ended meanwhile is none.
    status=$(cat "/proc/$worker/status" 2>/dev/null) || continue
    found=$((found + 1))
    has "$status" 'Seccomp:	2'
    has "$status" 'NoNewPrivs:	1'
done
[ "$found" -ge 8 ] || fail "only $found processes beside brigd"
wait $!
