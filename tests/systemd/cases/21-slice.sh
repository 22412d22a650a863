# The limits of brig.slice are those of the kernel's files, for all of brig together.
fresh
may alice
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
top=/sys/fs/cgroup/brig.slice
# limit FILE TEXT: what the kernel holds. A guest on the host's kernel may lack a controller.
limit() {
    if [ -e "$top/$1" ]; then [ "$(cat "$top/$1")" = "$2" ] || fail "$1 is $(cat "$top/$1"), not $2"
    elif [ "$KERNEL" = own ]; then fail "there is no $top/$1"
    else echo "note: $1 is not there on this kernel; asked systemd"; fi
}
property() { systemctl show -P "$1" brig.slice; }
[ "$(property TasksMax)" = 2048 ] || fail "TasksMax is $(property TasksMax)"
[ "$(systemctl show -P TasksMax brigd.service)" = 1024 ] || fail "TasksMax of the service"
memory=$(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) * 1024))
bytes=$(property MemoryMax)
[ "$bytes" -le $((memory * 71 / 100)) ] && [ "$bytes" -gt $((memory / 4)) ] || fail "MemoryMax is $bytes of $memory"
[ "$(property CPUWeight) $(property IOWeight) $(property MemorySwapMax)" = '80 80 0' ] || fail "$(systemctl show -p CPUWeight,IOWeight,MemorySwapMax brig.slice)"
limit memory.max "$(property MemoryMax)"
limit memory.high max
limit memory.swap.max 0
limit pids.max 2048
limit cpu.weight 80
has "$(cat "/proc/$(pid_of)/cgroup")" /brig.slice/
# As systemd-oomd reads it; it ends whole units.
[ "$(systemctl show -P ManagedOOMPreference brigd.service)" = avoid ] || fail "systemd-oomd may choose brigd first"
for worker in $(workers); do has "$(cat "/proc/$worker/cgroup" 2>/dev/null || echo gone /brig.slice/)" /brig.slice/; done
