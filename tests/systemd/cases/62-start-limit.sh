# A brigd that can not start is tried ten times and then left alone: who waits is told, and what
# the operations guide says brings it back.
fresh
may alice
printf '[Service]\nExecStartPre=+/bin/sh -c "echo >>/brig/starts; exit 1"\n' | dropin broken
: >/brig/starts
evaluate alice 1 >/brig/refused 2>&1 &
client=$!
starts() { wc -l </brig/starts; }
over() { [ "$(systemctl is-active brigd.socket)" = failed ]; }
over_or_more() { over || [ "$(starts)" -gt 10 ]; }
until_true 60 over_or_more
[ "$(starts)" = 10 ] || fail "it was started $(starts) times"
wait $client && fail "it was answered: $(cat /brig/refused)"
[ "$(systemctl is-active brigd.service)" = failed ] || fail "brigd is $(systemctl is-active brigd.service)"
[ "$(systemctl show -P Result brigd.socket)" = service-start-limit-hit ] || fail "$(systemctl show -P Result brigd.socket)"
said=$(evaluate alice 1 2>&1) && fail "somebody listens"
has "$said" brigd
rm /etc/systemd/system/brigd.service.d/broken.conf
systemctl daemon-reload
# Mended, it still is not tried before it is asked for.
over || fail "it is $(systemctl is-active brigd.socket)"
systemctl reset-failed brigd.socket brigd.service && systemctl start brigd.socket
[ "$(evaluate alice 2)" = 2 ] || fail "no answer after it was mended"
fresh
