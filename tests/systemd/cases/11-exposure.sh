# This suite's systemd has nothing to say about the units and drop-ins, and finds the
# service exposed by no more than it should be.
fresh
said=$(systemd-analyze verify --man=no brigd.service brigd.socket brigd-admin.socket 2>&1) || fail "$said"
[ -z "$said" ] || fail "$said"
# exposed TENTHS: at most so much.
exposed() { said=$(systemd-analyze security --no-pager --threshold="$1" brigd.service 2>&1) || fail "more than $1 tenths: $(tail -n 3 <<<"$said")"; }
exposed 5
note() { echo "note: $1: $(sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p' <<<"$said")"; }
note 'as installed'
install -m 0600 /dev/stdin /etc/brig/credentials/shop-token <<<hunter2-hunter2
for pair in delegate:8 namespaces:17 metrics-socket:5 loopback:15 credentials:5; do
    fresh
    example "${pair%%:*}"
    said=$(systemd-analyze verify --man=no brigd.service 2>&1) || fail "$said"
    [ -z "$said" ] || fail "${pair%%:*}: $said"
    exposed "${pair##*:}"
    note "with ${pair%%:*}.conf"
done
rm /etc/brig/credentials/shop-token
fresh
