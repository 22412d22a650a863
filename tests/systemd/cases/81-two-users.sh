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
# By group and by unit, as the kernel says of who connects.
getent group agents >/dev/null || groupadd agents
id carol >/dev/null 2>&1 || useradd -m -G brig,agents carol
cat >/etc/brig/brig.toml <<'TOML'
[principals."group:agents"]
callbacks = "allow"
[principals."group:agents".limits]
timeout_ms = 4321
[principals."unit:bob-agent.service"]
callbacks = "allow"
TOML
systemctl restart brigd.service
[ "$(evaluate carol 3)" = 3 ] || fail "carol is in the group"
said=$(evaluate carol --json --timeout 2m 'await new Promise(() => setTimeout(() => {}, 60000))' 2>&1) || true
has "$said" 4321
said=$(evaluate alice --json 1 2>&1) && fail "alice is in no section"
has "$said" not_permitted
said=$(evaluate bob --json 1 2>&1) && fail "bob is not in his unit"
# A container shows the cgroups of the machine around it as well, and units are not to be told.
if [ "$KERNEL" = own ]; then
    said=$(systemd-run --quiet --wait --pipe --unit bob-agent --uid bob -p SupplementaryGroups=brig brig --socket /run/brig/brig.sock eval 4) || fail "bob in his unit"
    [ "$said" = 4 ] || fail "$said"
fi
may alice bob
# The admin socket is another group's.
systemctl stop brigd.service 2>/dev/null
systemctl start brigd-admin.socket
[ "$(stat -c '%a %U %G' /run/brig/admin.sock)" = '660 root brigd' ] || fail "admin socket: $(stat -c '%a %U %G' /run/brig/admin.sock)"
said=$(as alice brig --socket /run/brig/admin.sock eval 1 2>&1) && fail "a client may use the admin socket"
has "$said" ermission
systemctl stop brigd-admin.socket
