# `sandbox.cgroup = true` without a delegated subtree: brigd does not start, and says why.
fresh
may alice
printf '[sandbox]\ncgroup = true\n' >>/etc/brig/brig.toml
systemctl restart brigd.service && fail "it started"
[ "$(systemctl show -P ExecMainStatus brigd.service)" = 3 ] || fail "exit status $(systemctl show -P ExecMainStatus brigd.service)"
said() { has "$(journalctl -u brigd.service -n 20 --no-pager)" delegate.conf; }
until_true 10 said
# Not even in a second.
[ "$(systemctl show -P SubState brigd.service)" = failed ] || fail "it is $(systemctl show -P SubState brigd.service)"
[ "$(systemctl show -P NRestarts brigd.service)" = 0 ] || fail "it is started again and again"
fresh
