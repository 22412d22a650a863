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
for _ in 1 2 3; do systemctl restart brigd.service; done
touch /brig/enough
wait $loop
[ "$(pid_of)" != "$pid" ] || fail "it was not restarted"
[ ! -s /brig/lost ] || fail "$(cat /brig/lost) $(tail -n 5 /brig/answers)"
[ "$(grep -c '"succeeded"' /brig/answers)" -ge 3 ] || fail "$(cat /brig/answers)"
