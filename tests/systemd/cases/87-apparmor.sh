# needs: own kernel (its AppArmor)
# A real AppArmor that forbids workers their namespaces: the doctor finds it and says what to do,
# the service goes on without them, and what was said mends it.
fresh
may alice
[ "$(cat /sys/module/apparmor/parameters/enabled)" = Y ] || fail "this kernel runs without AppArmor"
dpkg-deb -x /brig/apparmor/*.deb /brig/apparmor/root
# profile RULES: what confines the worker. The base is where the package's own files lie.
profile() {
    local abi=3.0
    [ ! -e /brig/apparmor/root/etc/apparmor.d/abi/4.0 ] || abi=4.0
    cat >/brig/apparmor/profile <<RULES
abi <abi/$abi>,
profile brig-worker /usr/libexec/brig/brig-worker flags=(attach_disconnected) {
  file, capability, network, unix, signal, ptrace, mount, umount, pivot_root, $1
}
RULES
    /brig/apparmor/root/sbin/apparmor_parser --base /brig/apparmor/root/etc/apparmor.d --replace --skip-cache /brig/apparmor/profile
}
[ -e /brig/apparmor/root/sbin/apparmor_parser ] || ln -s usr/sbin /brig/apparmor/root/sbin
example namespaces
finds user_namespace ok '' as alice
profile ''
systemctl restart brigd.service
layers=$(evaluate alice --json 1)
has "$layers" '"landlock"'
[ "$(cat "/proc/$(workers | head -n 1)/attr/current")" = 'brig-worker (enforce)' ] || fail "the profile does not hold"
if grep -q userns_create /sys/kernel/security/apparmor/features/namespaces/mask 2>/dev/null; then
    hasnt "$layers" user_namespace
    finds user_namespace missing 'rule `userns,`' as alice
    has "$(dmesg)" userns_create
    profile 'userns,'
    systemctl restart brigd.service
    layers=$(evaluate alice --json 1)
else
    echo "note: this kernel's AppArmor knows no rule for namespaces"
fi
has "$layers" '"user_namespace"'
finds user_namespace ok '' as alice
/brig/apparmor/root/sbin/apparmor_parser --base /brig/apparmor/root/etc/apparmor.d --remove /brig/apparmor/profile
fresh
