# The journal has structured fields, and nothing of a guest's that is not escaped.
fresh
may alice
evaluate alice --json 'await new Promise(done => setTimeout(done, 20000))' >/brig/answer 2>&1 &
client=$!
running() { has "$(systemctl show -P StatusText brigd.service)" '1 running'; }
until_true 10 running
pkill -KILL -x brig-worker
wait $client && fail "it survived"
evaluation=$(grep -o '"evaluation":"ev_[^"]*"' /brig/answer | cut -d'"' -f4)
died() { has "$(journalctl -u brigd.service "EVALUATION=$evaluation" --no-pager)" 'a worker died'; }
until_true 10 died
# A guest that prints control characters and lies about log lines reaches no log.
evaluate alice 'console.log("\u001b[31mFORGED\nbrigd: FORGED"); throw new Error("FORGED\u202e")' >/dev/null 2>&1 || true
hasnt "$(journalctl -u brigd.service --no-pager -o cat)" FORGED
has "$(journalctl -u brigd.service -o json --no-pager -n 200)" '"LEVEL"'
