# Operators have a socket of their own: a group, a mode, and a line in [admin].
fresh
may alice
member_of brigd olga
printf '[admin]\ngroups = ["brigd"]\n' >>/etc/brig/brig.toml
systemctl stop brigd.service
systemctl enable --now brigd-admin.socket >/dev/null 2>&1
[ "$(stat -c '%a %U %G' /run/brig/admin.sock)" = '660 root brigd' ] || fail "admin socket: $(stat -c '%a %U %G' /run/brig/admin.sock)"
[ "$(stat -c '%a %U %G' /run/brig/brig.sock)" = '660 root brig' ] || fail "client socket: $(stat -c '%a %U %G' /run/brig/brig.sock)"
[ "$(systemctl is-active brigd.service || true)" = inactive ] || fail "it runs before anybody asked"
# The first question of an operator starts brigd as well as a client's.
said=$(as olga brig admin status) || fail "$said"
has "$said" strong
has "$(as olga brig admin status --json)" '"level":"strong"'
[ "$(evaluate alice 1)" = 1 ] || fail "clients are not served beside operators"
said=$(as alice brig admin status 2>&1) && fail "a client may ask as an operator"
has "$said" ermission
# Who may connect but is not named is told so by brigd.
sed -i '/^\[admin\]/,$d' /etc/brig/brig.toml
systemctl restart brigd.service
said=$(as olga brig admin status --json 2>&1) && fail "nobody named her"
has "$said" not_permitted
# root, whom no file has to name.
brig admin status >/dev/null || fail "root is refused"
# An operator can see and end what runs.
evaluate alice --json 'await new Promise(() => setTimeout(() => {}, 60000))' >/brig/ended 2>&1 &
client=$!
seen() { evaluation=$(brig admin evaluations --json | grep -o 'ev_[0-9a-f]*' | head -n 1); [ -n "$evaluation" ]; }
until_true 10 seen
seen
brig admin kill "$evaluation" >/dev/null
wait $client && fail "it was not ended"
has "$(cat /brig/ended)" revoked
systemctl disable --now brigd-admin.socket >/dev/null 2>&1
[ ! -e /run/brig/admin.sock ] || fail "the admin socket is left"
# Clients that never leave brigd alone: the guide's command brings the operators' socket all the same.
fresh
may alice
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
rm -f /brig/enough
: >/brig/lost
clients=()
for _ in 1 2 3; do
    while [ ! -e /brig/enough ]; do
        code=0
        said=$(evaluate alice --json 1 2>&1) || code=$?
        # 6: refused, because it was shutting down.
        [ $code = 0 ] || [ $code = 6 ] || echo "$code $said" >>/brig/lost
    done &
    clients+=($!)
done
systemctl enable brigd-admin.socket >/dev/null 2>&1 && systemctl restart brigd.service
has "$(brig admin status)" strong
touch /brig/enough
wait "${clients[@]}"
[ ! -s /brig/lost ] || fail "clients lost: $(cat /brig/lost)"
systemctl disable --now brigd-admin.socket >/dev/null 2>&1
fresh
