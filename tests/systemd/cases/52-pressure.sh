# needs: own kernel (the controllers memory and pids)
# Evaluations that together fill brig.slice cost some of themselves, which are told so, and
# never brigd, though it is bigger than each of them: with workers in brigd's own cgroup
# and with one each.
fresh
may alice bob
slice=/sys/fs/cgroup/brig.slice
full='const all = new Uint8Array(8 << 20).fill(1); await new Promise(done => setTimeout(done, 15000)); all.length'
# filled: eight programs where there is room for about four.
filled() {
    [ "$(evaluate bob 1)" = 1 ] || fail "no answer"
    local pid before number ended=0 lived=0
    pid=$(pid_of)
    before=$(systemctl show -P NRestarts brigd.service)
    for number in $(workers); do [ "$(cat "/proc/$number/oom_score_adj" 2>/dev/null || echo 500)" = 500 ] || fail "the score of $number"; done
    [ "$(cat "/proc/$pid/oom_score_adj")" = 0 ] || fail "brigd has the score $(cat "/proc/$pid/oom_score_adj")"
    systemctl set-property --runtime brig.slice "MemoryMax=$(($(cat $slice/memory.current) + 40 * 1048576))"
    for number in 1 2 3 4 5 6 7 8; do evaluate alice --json "$full" >"/brig/full.$number" 2>&1 & done
    killed() { [ "$(awk '/^oom_kill / {print $2}' $slice/memory.events)" -gt "$1" ]; }
    until_true 20 killed "$1"
    # Meanwhile another client is served.
    [ "$(evaluate bob 2)" = 2 ] || fail "another client was hit"
    wait
    for number in 1 2 3 4 5 6 7 8; do
        if grep -q '"succeeded"' "/brig/full.$number"; then lived=$((lived + 1)); continue; fi
        has "$(cat "/brig/full.$number")" '"memory_limit"'
        has "$(cat "/brig/full.$number")" brig.slice
        ended=$((ended + 1))
    done
    echo "note: $lived were answered, $ended told memory_limit"
    [ $ended -ge 1 ] && [ $lived -ge 1 ] || fail "$ended were ended, $lived lived"
    [ "$(pid_of)" = "$pid" ] && [ "$(systemctl show -P NRestarts brigd.service)" = "$before" ] || fail "brigd was restarted"
    [ "$(systemctl is-active brigd.service)" = active ] || fail "brigd is $(systemctl is-active brigd.service)"
    systemctl revert brig.slice
    [ "$(evaluate alice 3)" = 3 ] || fail "no answer afterwards"
}
filled 0
example delegate
systemctl restart brigd.service
filled "$(awk '/^oom_kill / {print $2}' $slice/memory.events)"
has "$(evaluate alice --json 1)" '"cgroup"'
fresh
