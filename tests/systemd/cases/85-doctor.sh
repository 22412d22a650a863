# `brig doctor` finds each thing that is wrong with a host, names it, and says what to do.
fresh
may alice
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
for what in kernel 'seccomp actions' 'open files' processes 'client socket' credentials state clock connection; do finds "$what" ok '' env; done
brig doctor >/dev/null || fail "a good host has problems: $(brig doctor)"
# over FILE TEXT: as if the kernel said TEXT there.
over() { echo "$2" >/brig/said; mount --bind /brig/said "$1"; }
over /proc/sys/kernel/osrelease 5.4.0-150-generic
finds kernel problem 5.4.0 env
brig doctor >/dev/null && fail "it ends well on an old kernel"
umount /proc/sys/kernel/osrelease
over /proc/sys/kernel/seccomp/actions_avail 'kill_thread trap'
finds 'seccomp actions' problem kill_thread env
umount /proc/sys/kernel/seccomp/actions_avail
over /proc/sys/user/max_user_namespaces 0
finds user.max_user_namespaces missing 'sysctl user.max_user_namespaces' env
umount /proc/sys/user/max_user_namespaces
# What only Ubuntu's kernels have: shown as if this were one, with what else is read there.
mkdir -p /brig/kernel/seccomp
cp /proc/sys/kernel/osrelease /brig/kernel/
cp /proc/sys/kernel/seccomp/actions_avail /brig/kernel/seccomp/
echo 1 >/brig/kernel/apparmor_restrict_unprivileged_userns
mount --bind /brig/kernel /proc/sys/kernel
finds kernel.apparmor_restrict_unprivileged_userns missing 'AppArmor profile' env
echo 0 >/brig/kernel/apparmor_restrict_unprivileged_userns
finds kernel.apparmor_restrict_unprivileged_userns ok '' env
umount /proc/sys/kernel
hasnt "$(brig doctor --json)" apparmor_restrict
# What a unit or a container takes away.
within() { systemd-run --quiet --wait --pipe -p "$@"; }
finds landlock missing 'kernel' within SystemCallFilter=~landlock_create_ruleset -p SystemCallErrorNumber=EPERM
finds user_namespace missing 'user namespaces' within RestrictNamespaces=yes -p User=alice
finds cgroup missing delegate.conf env
finds 'open files' missing LimitNOFILE within LimitNOFILE=100
finds processes missing TasksMax within LimitNPROC=100
# Files of the service.
chmod 0666 /run/brig/brig.sock
finds 'client socket' problem SocketMode=0660 env
chmod 0660 /run/brig/brig.sock
chgrp root /run/brig/brig.sock
finds 'client socket' problem SocketGroup=brig env
chgrp brig /run/brig/brig.sock
install -m 0644 /dev/stdin /etc/brig/credentials/open <<<hunter2-hunter2
finds credentials problem open env
hasnt "$(brig doctor --json)" hunter2
rm /etc/brig/credentials/open
echo 'nonsense = 1' >>/etc/brig/brig.toml
finds configuration problem nonsense env
may alice
touch -d '+2 hours' /usr/bin/brigd
finds clock problem NTP env
touch /usr/bin/brigd
mount -t tmpfs -o size=1m tmpfs /var/lib/brig
finds state problem 'make room' env
umount /var/lib/brig
# Several at once are found in one run, each with what to do.
echo 'nonsense = 1' >>/etc/brig/brig.toml
chmod 0666 /run/brig/brig.sock
install -m 0644 /dev/stdin /etc/brig/credentials/open <<<hunter2-hunter2
over /proc/sys/user/max_user_namespaces 0
said=$(brig doctor --json) && fail "it ends well on a host with four faults"
for what in configuration 'client socket' credentials user.max_user_namespaces; do
    has "$(sed 's/},{/}\n{/g' <<<"$said" | grep -F "\"what\":\"$what\"" | grep -v '"grade":"ok"')" '"remedy":"'
done
umount /proc/sys/user/max_user_namespaces
rm /etc/brig/credentials/open
chmod 0660 /run/brig/brig.sock
may alice
systemctl stop brigd.service brigd.socket 2>/dev/null
finds connection problem brigd.socket env BRIG_SOCKET=/run/brig/brig.sock
systemctl start brigd.socket
brig doctor >/dev/null || fail "mended, it still has problems: $(brig doctor)"
fresh
