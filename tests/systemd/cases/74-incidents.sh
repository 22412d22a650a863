# The recipes of the operations guide, as a stranger would follow them: a backup that is
# restored, a runaway client, a leaked function, a suspected escape.
fresh
may alice bob
alice="uid:$(id -u alice)"
shell_function pay write '"od -An -N8 -tx1 /dev/urandom"' >/etc/brig/functions.d/store.toml
cat >/etc/brig/brig.toml <<TOML
[audit]
dir = "/var/lib/brig/audit"
[principals."$alice"]
callbacks = "deny"
host_function = "allow"
[principals."uid:$(id -u bob)"]
callbacks = "deny"
TOML
systemctl stop brigd.service
systemctl enable --now brigd-admin.socket >/dev/null 2>&1
call() { as alice brig call --socket /run/brig/brig.sock "$@"; }
once=$(call --idempotency-key paid store pay) || fail "no answer"
# A runaway client.
evaluate alice --json 'for (;;) await new Promise(done => setTimeout(done, 10))' >/brig/runaway 2>&1 &
runaway=$!
seen() { has "$(brig admin evaluations)" ev_; }
until_true 10 seen
has "$(brig admin evaluations)" "$(id -u alice)"
brig admin revoke --principal "$alice" >/dev/null
wait $runaway && fail "it was not ended"
has "$(cat /brig/runaway)" revoked
said=$(evaluate alice --json 1 2>&1) && fail "it may go on"
has "$said" not_permitted
[ "$(evaluate bob 1)" = 1 ] || fail "another client was hit"
printf '[principals."%s".quotas]\nrunning = 1\ncalls_per_minute = 3\n' "$alice" >>/etc/brig/brig.toml
brig admin reload >/dev/null || fail "$(brig admin reload 2>&1)"
brig admin restore --principal "$alice" >/dev/null
[ "$(evaluate alice 1)" = 1 ] || fail "it was restored"
# A leaked function.
brig admin revoke 'store.*' >/dev/null
call store pay >/dev/null 2>&1 && fail "what leaked is called"
systemctl restart brigd.service
call store pay >/dev/null 2>&1 && fail "a restart took the revoke back"
has "$(brig audit export --function 'store.*' --from 2020-01-01T00:00:00Z)" '"call_ended"'
brig admin restore 'store.*' >/dev/null
call store pay >/dev/null || fail "it was restored"
# A suspected escape: who it was is found from the log.
evaluate alice --json 'await new Promise(done => setTimeout(done, 20000))' >/brig/escape 2>&1 &
client=$!
until_true 10 seen
pkill -SYS -x brig-worker
wait $client && fail "it survived"
evaluation=$(grep -o '"evaluation":"ev_[^"]*"' /brig/escape | cut -d'"' -f4)
named() { has "$(journalctl -u brigd PRIORITY=4 -o json --no-pager)" "$evaluation"; }
until_true 10 named
has "$(brig audit export --evaluation "$evaluation")" '"uid"'
# Backup and restore, by the very lines of the guide that the package brings, while brigd runs and
# its state is lost later: what was answered stays answered, what was revoked stays revoked.
recipe() {
    sed -n "/^<!-- recipe: $1 -->\$/,/^\`\`\`\$/p" /usr/share/doc/brig/operations.md | sed '1,2d;$d' >/brig/recipe.sh
    [ -s /brig/recipe.sh ] || fail "the guide has no recipe $1"
    said=$(bash -euo pipefail /brig/recipe.sh 2>&1) || fail "$1: $said"
}
brig admin revoke --principal "uid:$(id -u bob)" >/dev/null
recipe backup
has "$said" 'bytes, whole'
has "$said" 'ok: '
[ "$(stat -c '%a %U' /backup/journal.sqlite)" = '600 root' ] || fail "the copy is $(stat -c '%a %U' /backup/journal.sqlite)"
[ "$(pid_of)" != 0 ] || fail "brigd does not run any more"
later=$(call --idempotency-key later store pay) || fail "no answer"
brig admin restore --principal "uid:$(id -u bob)" >/dev/null
systemctl kill -s KILL brigd.service
rm -rf /var/lib/brig/*
recipe restore
[ "$(call --idempotency-key paid store pay)" = "$once" ] || fail "it ran again after the restore"
[ "$(call --idempotency-key later store pay)" != "$later" ] || fail "what ran since the backup is known to it"
evaluate bob 1 >/brig/bob 2>&1 && fail "what was revoked is not revoked any more"
brig admin restore --principal "uid:$(id -u bob)" >/dev/null
[ "$(evaluate bob 1)" = 1 ] || fail "it was restored"
[ "$(stat -c '%a %U' /var/lib/brig /var/lib/brig/journal.sqlite | sort -u | tr '\n' ,)" = '600 brigd,700 brigd,' ] || fail "$(ls -la /var/lib/brig)"
brig audit verify >/dev/null || fail "the chain is broken after the restore: $(brig audit verify)"
brig doctor >/dev/null || fail "$(brig doctor)"
systemctl disable --now brigd-admin.socket >/dev/null 2>&1
rm -r /etc/brig/functions.d/store.toml /backup /var/lib/brig.before
fresh
