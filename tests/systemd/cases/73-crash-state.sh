# A brigd that is killed has all that it had written: answers, revokes, questions, audit.
fresh
may alice
anew='"od -An -N8 -tx1 /dev/urandom"'
{ shell_function look read "$anew"; shell_function pay write "$anew"; } >/etc/brig/functions.d/shop.toml
cat >/etc/brig/brig.toml <<TOML
[audit]
dir = "/var/lib/brig/audit"
[principals."uid:$(id -u alice)"]
callbacks = "deny"
[[principals."uid:$(id -u alice)".host_function.rules]]
mode = "allow"
patterns = ["shop.*"]
budget = [{ calls = 100, per = "day" }]
[[principals."uid:$(id -u alice)".host_function.rules]]
mode = "ask"
patterns = ["shop.pay"]
when = { required = ["ask"] }
ask = { approvers = ["user:root"], wait_seconds = 600 }
TOML
call() { as alice brig call --socket /run/brig/brig.sock "$@"; }
systemctl stop brigd.service
systemctl enable --now brigd-admin.socket >/dev/null 2>&1
call shop look >/dev/null || fail "$(call shop look 2>&1)"
first=$(call --idempotency-key once shop pay)
[ -n "$first" ] || fail "no answer"
call --json '{"ask":true}' shop pay >/brig/asked 2>&1 &
asked=$!
waits() { has "$(brig approve list 2>&1) $(cat /brig/asked)" shop.pay; }
until_true 10 waits
brig admin revoke shop.look >/dev/null
call shop look >/dev/null 2>&1 && fail "what is revoked is called"
pid=$(pid_of)
kill -KILL "$pid"
again() { [ "$(pid_of)" != 0 ] && [ "$(pid_of)" != "$pid" ] && [ "$(systemctl is-active brigd.service)" = active ]; }
until_true 30 again
wait $asked && fail "a question that died was answered: $(cat /brig/asked)"
[ "$(call --idempotency-key once shop pay)" = "$first" ] || fail "what was answered ran again"
has "$(brig admin revoked)" shop.look
said=$(call shop look 2>&1) && fail "a crash took a revoke back"
has "$said" revoked
brig audit verify || fail "the chain is broken"
has "$(brig audit export --function shop.pay)" '"approval_expired"'
has "$(brig approve list --decided 2>&1)" abandoned
[ "$(brig audit export --function shop.pay | grep -c '"call_ended"')" = 1 ] || fail "$(brig audit export --function shop.pay)"
brig admin restore shop.look >/dev/null
call shop look >/dev/null || fail "it was restored"
systemctl disable --now brigd-admin.socket >/dev/null 2>&1
rm /etc/brig/functions.d/shop.toml
fresh
