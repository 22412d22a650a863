# Runs in the guest as root: every case in a shell of its own, in the order given.
# Prints a line for each, and what a failed one said.
. /brig/order
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root KERNEL SUITE
if [ "$KERNEL" = own ]; then
    stty -F /dev/ttyS1 raw -echo
    stty -F /dev/ttyS2 raw -echo
    exec >/dev/ttyS1 2>&1
    journal=/dev/ttyS2
else
    exec >/brig/out/results.log 2>&1
    journal=/brig/out/journal.log
fi
exec </dev/null
# The tools of every case.
cat >/brig/tools.sh <<'TOOLS'
set -Eeuo pipefail
trap 'echo "failed at line $LINENO: $BASH_COMMAND"' ERR
fail() { echo "failed: $*"; trap - ERR; exit 1; }
# Emulation computes some 30 times slower: deadlines are further away, never passed over.
if [ "$KERNEL" = own ]; then SLOW=6 WATCHDOG=24; else SLOW=2 WATCHDOG=6; fi
# until_true SECONDS COMMAND…: the event, with a deadline that fails loudly.
until_true() {
    local end=$((SECONDS + $1 * SLOW)); shift
    until ("$@") >/brig/last 2>&1; do
        [ $SECONDS -lt "$end" ] || { cat /brig/last; fail "not in time: $*"; }
        sleep 0.2
    done
}
# has TEXT PATTERN: a fixed string in a text, or the text is shown.
has() { [[ $1 == *"$2"* ]] || fail "no '$2' in: $1"; }
hasnt() { [[ $1 != *"$2"* ]] || fail "there is '$2' in: $1"; }
# brigd's nursery and workers; brigd itself names the program only as an argument.
workers() { pgrep -x brig-worker; }
pid_of() { systemctl show -P MainPID brigd.service; }
install_brig() { dpkg -s brig >/dev/null 2>&1 || dpkg -i /brig/brig.deb >/dev/null; systemctl start brigd.socket; }
# may USER…: these may evaluate.
may() {
    local uids=() user
    for user in "$@"; do
        id "$user" >/dev/null 2>&1 || useradd -m -G brig "$user"
        uids+=("$(id -u "$user")")
    done
    (IFS=,; printf '[clients]\nuids = [%s]\n' "${uids[*]}" >/etc/brig/brig.toml)
}
# as USER COMMAND…: as that user with its groups.
as() { local user=$1; shift; setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups "$@"; }
# evaluate USER PROGRAM…: the service's brigd, never a private one.
evaluate() { local user=$1; shift; as "$user" brig --socket /run/brig/brig.sock eval "$@"; }
dropin() { mkdir -p /etc/systemd/system/brigd.service.d; cat >"/etc/systemd/system/brigd.service.d/$1.conf"; systemctl daemon-reload; }
# watched: with a watchdog that a case can wait for.
watched() { printf '[Service]\nWatchdogSec=%ss\n' "$WATCHDOG" | dropin watchdog; systemctl restart brigd.service; }
# example NAME: the packaged drop-in, as it is.
example() { dropin "$1" <"/usr/share/doc/brig/examples/$1.conf"; }
# shell_function NAME EFFECT SCRIPT: what a file of functions says of one that a shell runs;
# the script as a TOML string.
shell_function() {
    cat <<TOML
[functions.$1]
description = "A function named $1"
effect = "$2"
input_schema = { type = "object" }
[functions.$1.command]
program = "/bin/sh"
args = ["-c", $3]
input = "none"
output = "text"
TOML
}
# member_of GROUP USER: a user of that group and of the clients' group.
member_of() { id "$2" >/dev/null 2>&1 || useradd -m -G "brig,$1" "$2"; }
# finds WHAT GRADE TEXT COMMAND…: one finding of the doctor that COMMAND runs; `missing`
# and `problem` come with a remedy.
finds() {
    local what=$1 grade=$2 text=$3 said finding; shift 3
    said=$("$@" brig doctor --json) || true
    finding=$(sed 's/},{/}\n{/g' <<<"$said" | grep -F "\"what\":\"$what\"" | head -n 1)
    has "$finding" "\"grade\":\"$grade\""
    has "$finding" "$text"
    [ "$grade" = ok ] || has "$finding" '"remedy":"'
}
fresh() { install_brig; systemctl stop brigd.service; rm -rf /etc/systemd/system/brigd.service.d /etc/brig/functions.d/* /etc/brig/conf.d/*; systemctl daemon-reload; systemctl reset-failed; install_brig; }
TOOLS
for tries in $(seq 600); do
    case $(systemctl is-system-running) in initializing | starting) sleep 0.1 ;; *) break ;; esac
done
failed=0 number=0
for case in $CASES; do
    number=$((number + 1)) begun=$SECONDS
    if bash -c '. /brig/tools.sh; . "/brig/$0.sh"' "$case" >"/brig/$case.said" 2>&1; then
        echo "ok $number - $case ($((SECONDS - begun)) s)"
        grep '^note: ' "/brig/$case.said" || true
    else
        failed=1
        echo "not ok $number - $case ($((SECONDS - begun)) s)"
        sed 's/^/    /' "/brig/$case.said"
    fi
done
[ $failed = 0 ] || journalctl -b -q --no-pager -o short-monotonic -n 400 >"$journal" 2>&1
printf '\n%s %d\n' "$WORD" $failed
sync
if [ "$KERNEL" = own ]; then sleep 0.2; systemctl poweroff -ff; else kill -s RTMIN+4 1; fi
