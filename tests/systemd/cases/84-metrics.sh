# Figures over a Unix socket (metrics-socket.conf) and over loopback (loopback.conf).
fresh
may alice
member_of brigd olga
# ask PROGRAM-ARGUMENTS…: GET /metrics as whoever runs it; the guest has no curl.
cat >/brig/ask.sh <<'ASK'
exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 7
printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&3
cat <&3
ASK
printf '[metrics]\nsocket = "/run/brigd/metrics.sock"\n' >>/etc/brig/brig.toml
# Without the drop-in there is no folder for it: brigd says so and does not start.
systemctl restart brigd.service && fail "it started without a folder for its socket"
has "$(journalctl -u brigd.service -n 30 --no-pager)" /run/brigd/metrics.sock
systemctl reset-failed brigd.service brigd.socket
example metrics-socket
systemctl restart brigd.service
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
[ "$(stat -c '%a %U %G' /run/brigd)" = '750 brigd brigd' ] || fail "$(stat -c '%a %U %G' /run/brigd)"
[ "$(stat -c '%a %U %G' /run/brigd/metrics.sock)" = '660 brigd brigd' ] || fail "$(stat -c '%a %U %G' /run/brigd/metrics.sock)"
pid=$(pid_of)
[ "$(nsenter -t "$pid" -n cat /proc/net/dev | grep -c :)" = 1 ] || fail "there is a network"
# systemd's own proxy, as docs/metrics.md has it, shows it to a Prometheus.
cat >/etc/systemd/system/brigd-metrics.socket <<'UNIT'
[Socket]
ListenStream=127.0.0.1:9465
UNIT
cat >/etc/systemd/system/brigd-metrics.service <<'UNIT'
[Service]
User=brigd
ExecStart=/usr/lib/systemd/systemd-socket-proxyd /run/brigd/metrics.sock
UNIT
systemctl daemon-reload
ip link set lo up 2>/dev/null || true
systemctl start brigd-metrics.socket
said=$(bash /brig/ask.sh 9465) || fail "the proxy shows nothing"
has "$said" 'brig_evaluations_total{outcome="succeeded",code="none"} 1'
as alice ls /run/brigd >/dev/null 2>&1 && fail "a client may look into the folder"
as olga ls /run/brigd >/dev/null || fail "an operator may not"
systemctl stop brigd-metrics.socket brigd-metrics.service 2>/dev/null
rm /etc/systemd/system/brigd-metrics.*
[ "$(systemctl is-active brigd.service)" = active ] || fail "it does not run"
# By loopback: brigd is on the host's, and nothing but loopback is let through.
fresh
may alice
printf '[metrics]\nlisten = "127.0.0.1:9464"\n' >>/etc/brig/brig.toml
example loopback
systemctl restart brigd.service
[ "$(evaluate alice 2)" = 2 ] || fail "no answer"
pid=$(pid_of)
[ "$(readlink "/proc/$pid/ns/net")" = "$(readlink /proc/1/ns/net)" ] || fail "it is not in the host's network"
said=$(bash /brig/ask.sh 9464) || fail "no figures"
has "$said" 'brig_build_info'
# A worker is in the same network, and has no call to use it with.
has "$(evaluate alice --json 1)" '"seccomp"'
[ "$(systemctl show -P IPAddressDeny brigd.service)" != '' ] || fail "everything is let through"
fresh
