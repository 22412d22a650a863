# Socket activation: across restarts every connection is taken and every program answered.
fresh
may alice
[ "$(evaluate alice 1)" = 1 ] || fail "no answer"
pid=$(pid_of)
(
    while [ ! -e /brig/enough ]; do
        code=0
        evaluate alice --json 1 >>/brig/answers 2>&1 || code=$?
        # 6: refused, because it was shutting down, which is an answer; nothing ran.
        [ $code = 0 ] || [ $code = 6 ] || echo "LOST $code"
    done
) >/brig/lost 2>&1 &
loop=$!
rm -f /brig/enough
# How fast the loop is, the machine says: each restart is to be lived through by an answer.
answered() { grep -c '"succeeded"' /brig/answers || :; }
more_than() { [ "$(answered)" -gt "$1" ]; }
: >>/brig/answers
for _ in 1 2 3; do
    before=$(answered)
    systemctl restart brigd.service
    until_true 30 more_than "$before"
done
touch /brig/enough
wait $loop
[ "$(pid_of)" != "$pid" ] || fail "it was not restarted"
[ ! -s /brig/lost ] || fail "$(cat /brig/lost) $(tail -n 5 /brig/answers)"
[ "$(answered)" -ge 3 ] || fail "$(cat /brig/answers)"
