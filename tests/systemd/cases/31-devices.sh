# needs: own kernel (the controller of devices, and making one)
# Where a drop-in gives the host's devices back, none of them can be opened: `DevicePolicy=`,
# which `PrivateDevices=` and `ProtectClock=` imply as packaged.
fresh
# A serial port that anybody may open, under a name of its own.
mknod -m 0666 /dev/brig-probe c 4 66
as nobody bash -c 'exec 3<>/dev/brig-probe' || fail "nobody can open it anyway"
cat >/brig/probe <<'PROBE'
exec >/var/lib/brig/probe 2>&1
(exec 3</dev/null) && echo 'null opened'
(exec 3<>/dev/brig-probe) && echo 'port opened'
true
PROBE
# probed LINES: what a process in the place of brigd may open.
probed() {
    printf '[Service]\nPrivateDevices=no\nProtectClock=no\nExecStartPre=/bin/bash /brig/probe\n%s\n' "$1" | dropin probe
    systemctl restart brigd.service
    said=$(cat /var/lib/brig/probe)
}
probed ''
has "$said" 'null opened'
hasnt "$said" 'port opened'
has "$said" 'Operation not permitted'
# It is that directive which refuses.
probed 'DevicePolicy=auto'
has "$said" 'port opened'
rm /dev/brig-probe /var/lib/brig/probe
fresh
