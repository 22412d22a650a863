# The drop-in namespaces.conf gives workers namespaces of their own, and nothing else to brigd.
fresh
may alice
dropin namespaces </usr/share/doc/brig/examples/namespaces.conf
systemctl restart brigd.service
layers=$(evaluate alice --json 1)
for layer in user_namespace pid_namespace mount_namespace net_namespace ipc_namespace uts_namespace cgroup_namespace empty_root landlock; do has "$layers" "\"$layer\""; done
pid=$(pid_of)
has "$(cat "/proc/$pid/status")" 'CapEff:	0000000000000000'
outside=$(readlink "/proc/$pid/ns/user") inside=0
for worker in $(workers); do [ "$(readlink "/proc/$worker/ns/user")" = "$outside" ] || inside=$((inside + 1)); done
[ "$inside" -ge 8 ] || fail "only $inside processes have a user namespace"
fresh
