# A fresh installation listens, and grants nothing to anybody.
! getent group brig >/dev/null || fail "the group is there before the package"
dpkg -i /brig/brig.deb >/dev/null
getent passwd brigd | grep -q nologin || fail "user brigd"
getent group brig >/dev/null || fail "group brig"
[ "$(systemctl is-enabled brigd.socket)" = enabled ] || fail "the socket is not enabled"
[ "$(systemctl is-active brigd.socket)" = active ] || fail "the socket does not listen"
[ "$(systemctl is-active brigd.service || true)" = inactive ] || fail "brigd runs without a client"
[ "$(stat -c '%a %U %G' /run/brig/brig.sock)" = '660 root brig' ] || fail "socket: $(stat -c '%a %U %G' /run/brig/brig.sock)"
[ ! -e /run/brig/admin.sock ] || fail "there is an admin socket that nobody asked for"
[ "$(stat -c '%a %U' /etc/brig/credentials)" = '700 root' ] || fail "the folder of credentials"
# What the guide says to do first is possible before brigd ever ran.
said=$(brigd config check --strict 2>&1) || fail "as shipped: $said"
useradd -m stranger
useradd -m -G brig member
said=$(evaluate stranger 1 2>&1) && fail "a stranger may connect"
has "$said" ermission
said=$(evaluate member --json 1 2>&1) && fail "a member may evaluate without being granted it"
has "$said" not_permitted
[ "$(brig --socket /run/brig/brig.sock eval 1+1)" = 2 ] || fail "root may not"
[ "$(stat -c '%a %U' /var/lib/brig)" = '700 brigd' ] || fail "the state folder"
# The configuration as shipped is valid, and says nothing but comments.
[ -z "$(grep -v '^ *\(#\|$\)' /etc/brig/brig.toml)" ] || fail "brig.toml sets something"
# Every example in it is valid too.
groupadd -f agents
sed -n 's/^#\(\[.*\]\|[a-z_]* = .*\)$/\1/p' /etc/brig/brig.toml | grep -v '^cgroup = true' >/brig/examples.toml
setpriv --reuid=brigd --regid=brigd --clear-groups brigd --config /brig/examples.toml --worker /usr/libexec/brig/brig-worker --check
