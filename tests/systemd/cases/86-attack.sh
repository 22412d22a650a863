# `brig doctor --attack` runs its programs on the packaged service, and all of them are held.
fresh
may alice
said=$(as alice brig --socket /run/brig/brig.sock doctor --attack --json) || fail "$(sed 's/},{/}\n{/g' <<<"$said" | grep -F '"grade":"problem"')"
for name in cpu-loop mem-array reach-import reach-denied-function; do has "$said" "$name"; done
hasnt "$said" '"grade":"problem"'
[ "$(evaluate alice 1)" = 1 ] || fail "no answer after the attacks"
