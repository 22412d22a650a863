# needs: own kernel (the controllers memory and pids)
# The drop-in delegate.conf gives each worker a cgroup, and the kernel kills one worker
# that uses too much, nobody else, and the answer says memory_limit.
fresh
may alice
# What the heap limit allows, the cgroup does not.
printf '[sandbox]\ncgroup = true\ncgroup_memory_bytes = 25165824\n' >>/etc/brig/brig.toml
dropin delegate </usr/share/doc/brig/examples/delegate.conf
systemctl restart brigd.service
top=/sys/fs/cgroup/brig.slice/brigd.service
has "$(evaluate alice --json 1)" '"cgroup"'
pid=$(pid_of)
[ "$(cat "/proc/$pid/cgroup")" = 0::/brig.slice/brigd.service/supervisor ] || fail "brigd is in $(cat "/proc/$pid/cgroup")"
eight() { [ "$(find "$top" -maxdepth 1 -name 'worker-*' | wc -l)" = 8 ]; }
# A probe of the watchdog may take a worker, and its leaf, away at any moment.
confined() {
    eight || return 1
    local leaf
    for leaf in "$top"/worker-*; do
        [ "$(cat "$leaf/memory.max")" = 25165824 ] && [ "$(cat "$leaf/pids.max")" = 1 ] && [ "$(cat "$leaf/memory.oom.group")" = 1 ] || return 1
        [ "$(wc -l <"$leaf/cgroup.procs")" = 1 ] || return 1
    done
}
until_true 20 confined
before=$(systemctl show -P NRestarts brigd.service)
evaluate alice --json 'await new Promise(done => setTimeout(done, 6000)); "untouched"' >/brig/neighbour 2>&1 &
neighbour=$!
said=$(evaluate alice --json 'const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));' 2>&1) && fail "it succeeded: $said"
has "$said" '"memory_limit"'
has "$said" 'sandbox.cgroup_memory_bytes'
[ "$(awk '/^oom_kill / {print $2}' "$top/memory.events")" -ge 1 ] || fail "the kernel killed nobody: $(cat "$top/memory.events")"
wait $neighbour || fail "the neighbour: $(cat /brig/neighbour)"
has "$(cat /brig/neighbour)" untouched
[ "$(pid_of)" = "$pid" ] && [ "$(systemctl show -P NRestarts brigd.service)" = "$before" ] || fail "brigd was restarted"
has "$(evaluate alice --json 1)" '"succeeded"'
until_true 20 eight
# What it costs, by brigd's own account.
systemctl kill --kill-whom=main -s USR1 brigd.service
counted() { journalctl -u brigd.service -o json --no-pager | grep -o '"CGROUP_US":"[0-9]*"'; }
until_true 20 counted
workers=$(journalctl -u brigd.service -o json --no-pager | grep CGROUP_US | tail -n 1 | grep -o '"WORKERS":"[0-9]*"' | tr -dc 0-9)
took=$(counted | tail -n 1 | tr -dc 0-9)
echo "note: $workers workers, $((took / workers)) us each for a cgroup (under emulation)"
# A brigd that is killed leaves nothing: the next one cleans up.
kill -KILL "$pid"
back() { [ "$(pid_of)" != 0 ] && [ "$(pid_of)" != "$pid" ] && eight; }
until_true 40 back
has "$(evaluate alice --json 1)" '"cgroup"'
fresh
