# Every layer of the unit and of a worker, read from inside and from the kernel.
install_brig
may alice
# What a process in the place of brigd may do: it is started as brigd is, just before it.
cat >/brig/probe <<'PROBE'
exec >/var/lib/brig/probe 2>&1
echo "umask $(umask), core $(ulimit -Hc), files $(ulimit -Hn)"
(exec 3<>/dev/tcp/127.0.0.1/1) 2>&1 | sed 's/^.*: /socket: /' | tail -n 1
[ -e /dev/brig-probe ] && echo 'device seen' || echo 'device hidden'
[ -e /usr/lib/modules/brig-probe ] && echo 'modules seen' || echo 'modules hidden'
touch /var/lib/brig/planted
chmod u+s /var/lib/brig/planted 2>/dev/null && echo 'set-id planted' || echo 'set-id refused'
rm /var/lib/brig/planted
perl -e 'sub try { my ($name, $number, @with) = @_; print "$name ", syscall($number, @with) == -1 ? "refused" : "done", "\n" }
    try("priority", 141, 0, 0, 1); try("personality", 135, 0x40000); try("executable", 9, 0, 4096, 7, 0x22, -1, 0); try("namespace", 272, 0x10000000);
    my $of = "\0" x 200; syscall(250, 6, -3, $of, 200); print "keyring ", $of =~ /_uid_ses/ ? "of the user" : "its own", "\n"'
PROBE
touch /dev/brig-probe
mkdir -p /usr/lib/modules/brig-probe
printf '[Service]\nExecStartPre=/bin/bash /brig/probe\n' | dropin probe
systemctl restart brigd.service
probed=$(cat /var/lib/brig/probe)
for fact in 'umask 0077, core 0,' 'socket: Address family not supported' 'device hidden' 'modules hidden' 'set-id refused' 'priority refused' \
    'personality refused' 'executable refused' 'namespace refused' 'keyring its own'; do has "$probed" "$fact"; done
[ "$(systemctl show -P LimitNOFILESoft brigd.service)" = 524288 ] || fail "LimitNOFILE is $(systemctl show -P LimitNOFILESoft brigd.service)"
# A container can not have more than this machine has.
[ "$KERNEL" = host ] || has "$probed" 'files 524288'
rm -r /dev/brig-probe /usr/lib/modules/brig-probe /etc/systemd/system/brigd.service.d/probe.conf /var/lib/brig/probe
systemctl daemon-reload
layers=$(evaluate alice --json 1)
for layer in seccomp no_new_privs no_capabilities landlock rlimits cpu_timer descriptors not_dumpable parent_death; do has "$layers" "\"$layer\""; done
has "$layers" '"level":"strong"'
hasnt "$layers" user_namespace
pid=$(pid_of)
status=$(cat "/proc/$pid/status")
for fact in 'NoNewPrivs:	1' 'Seccomp:	2' 'CapEff:	0000000000000000' 'CapBnd:	0000000000000000' 'CapPrm:	0000000000000000' 'CapAmb:	0000000000000000'; do has "$status" "$fact"; done
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
# What lies about of its user goes with it.
as brigd ipcmk --shmem 64 >/dev/null
has "$(ipcs -m)" brigd
systemctl stop brigd.service
hasnt "$(ipcs -m)" brigd
