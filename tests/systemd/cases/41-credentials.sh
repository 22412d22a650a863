# The drop-in credentials.conf: the secret reaches the function that names it, and nothing else.
fresh
may alice
secret=hunter2-0123456789abcdef
install -m 0600 /dev/stdin /etc/brig/credentials/shop-token <<<"$secret"
given() { printf '[functions.%s.command.credentials]\nshop-token = { variable = "SHOP_TOKEN" }\n' "$1"; }
# One that proves by its digest that it has the secret, one that gives it away, and one that
# is given none and tells all that it can see.
{
    echo '[credentials.shop-token]'
    shell_function with read '"printf %s \"$SHOP_TOKEN\" | sha256sum; env | wc -l"'
    given with
    shell_function shown read '"echo \"it is $SHOP_TOKEN\"; echo \"$SHOP_TOKEN\" >&2"'
    given shown
    shell_function without read '"env; tr '"'\\\\0' '\\\\n'"' </proc/$PPID/environ; cat /proc/$PPID/cmdline | tr '"'\\\\0'"' '"' '"'; echo; ls /proc/self/fd"'
} >/etc/brig/functions.d/shop.toml
cat >/etc/brig/brig.toml <<TOML
[audit]
dir = "/var/lib/brig/audit"
[principals."uid:$(id -u alice)"]
callbacks = "allow"
host_function = "allow"
TOML
said=$(brigd config check /etc/brig/brig.toml 2>&1) && fail "a secret that is not there is not missed"
has "$said" shop-token
example credentials
systemctl restart brigd.service
setpriv --reuid=brigd --regid=brigd --clear-groups brigd config check /etc/brig/brig.toml
# Root, who asks the same of the service, is not told that its secrets are somebody's else.
brigd config check /etc/brig/brig.toml
said=$(evaluate alice --json 'await shop.with({})') || fail "$said"
has "$said" "$(printf %s "$secret" | sha256sum | cut -d' ' -f1)"
said=$(evaluate alice --json 'await shop.shown({})') || fail "$said"
has "$said" '[redacted:shop-token]'
hasnt "$said" "$secret"
said=$(evaluate alice --json 'await shop.without({})') || fail "$said"
hasnt "$said" "$secret"
hasnt "$said" SHOP_TOKEN
# Whoever is not granted the functions does not learn that they are there.
may alice
systemctl reload brigd.service
gone() { hasnt "$(evaluate alice --json 'typeof shop' 2>&1)" '"object"'; }
until_true 10 gone
# No process of brig has it where another could look for it: not in its environment, its
# arguments or its mounts; brigd, which has to read it, is the only one that sees the folder.
pid=$(pid_of)
has "$(nsenter -t "$pid" -m -- ls /run/credentials/brigd.service)" shop-token
[ "$(stat -c '%a' /run/credentials/brigd.service)" != 755 ] || fail "others may see the credentials"
as alice cat /run/credentials/brigd.service/shop-token >/dev/null 2>&1 && fail "a client may read the credential"
for process in $pid $(workers); do
    # It may have ended meanwhile.
    all=$(tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null; tr '\0' '\n' <"/proc/$process/cmdline" 2>/dev/null) || continue
    hasnt "$all" "$secret"
    if [ "$process" != "$pid" ]; then hasnt "$all" CREDENTIALS_DIRECTORY; fi
    [ ! -r "/proc/$process/mem" ] || as alice cat "/proc/$process/environ" >/dev/null 2>&1 && fail "a client may look into process $process"
done
# Neither what brigd logged, nor what it recorded, nor anything else that it wrote.
hasnt "$(journalctl -b --no-pager -o json)" "$secret"
grep -rqF "$secret" /var/lib/brig /run/brig && fail "$(grep -rlF "$secret" /var/lib/brig /run/brig)"
[ -n "$(ls /var/lib/brig/audit)" ] || fail "there is no audit to look into"
rm /etc/brig/functions.d/shop.toml /etc/brig/credentials/shop-token
fresh
