# The preset as packaged: the clients' socket is on, that of operators is off.
fresh
enabled() { systemctl is-enabled "$1" || true; }
systemctl disable brigd.socket 2>/dev/null
systemctl enable brigd-admin.socket 2>/dev/null
systemctl preset brigd.socket brigd-admin.socket 2>/dev/null
[ "$(enabled brigd.socket)" = enabled ] || fail "brigd.socket is $(enabled brigd.socket)"
[ "$(enabled brigd-admin.socket)" = disabled ] || fail "brigd-admin.socket is $(enabled brigd-admin.socket)"
# All at once, as an image is made.
systemctl disable brigd.socket 2>/dev/null
systemctl enable brigd-admin.socket 2>/dev/null
systemctl preset-all >/dev/null 2>&1 || true
[ "$(enabled brigd.socket)" = enabled ] || fail "after preset-all brigd.socket is $(enabled brigd.socket)"
[ "$(enabled brigd-admin.socket)" = disabled ] || fail "after preset-all brigd-admin.socket is $(enabled brigd-admin.socket)"
[ ! -e /etc/systemd/system/multi-user.target.wants/brigd.service ] || fail "brigd starts without a client"
systemctl preset brigd.service 2>/dev/null
[ "$(enabled brigd.socket)" = enabled ] || fail "the preset of the service took the socket with it"
# Whoever enables the service has its socket, which is what listens after a boot.
systemctl disable brigd.socket brigd.service 2>/dev/null
[ "$(enabled brigd.socket)" = disabled ] || fail "disabled, brigd.socket is $(enabled brigd.socket)"
systemctl enable brigd.service 2>/dev/null
[ "$(enabled brigd.socket)" = enabled ] || fail "enabling brigd.service leaves brigd.socket $(enabled brigd.socket)"
