# Two users of the same socket: each has what it was granted, and nothing of the other.
fresh
may alice
useradd -m -G brig bob 2>/dev/null || true
systemctl restart brigd.service
[ "$(evaluate alice '"for alice"')" = '"for alice"' ] || fail "alice"
said=$(evaluate bob --json 1 2>&1) && fail "bob may evaluate"
has "$said" not_permitted
has "$said" nothing
may alice bob
systemctl restart brigd.service
[ "$(evaluate bob 2)" = 2 ] || fail "bob was granted it"
# The admin socket is another group's.
systemctl stop brigd.service 2>/dev/null
systemctl start brigd-admin.socket
[ "$(stat -c '%a %U %G' /run/brig/admin.sock)" = '660 root brigd' ] || fail "admin socket: $(stat -c '%a %U %G' /run/brig/admin.sock)"
said=$(as alice brig --socket /run/brig/admin.sock eval 1 2>&1) && fail "a client may use the admin socket"
has "$said" ermission
systemctl stop brigd-admin.socket
