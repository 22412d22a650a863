#!/bin/sh
# Answers orders.refund. An order that can not be refunded is an error with a code of
# its own, which the program can handle: JSON on standard output and an exit other than 0.
set -eu
read -r input
order=${input#*:}
order=${order#*\"}
order=${order%%\"*}

while read -r _ id _ status; do
    [ "$id" = "$order" ] || continue
    if [ "$status" = pending ]; then
        # A real handler would pay here, and pass BRIG_IDEMPOTENCY_KEY on so that a
        # repetition is recognised.
        printf '{"orderId":"%s","refunded":true}\n' "$id"
        exit 0
    fi
    printf '{"code":"not_pending","message":"order %s is %s","data":{"status":"%s"}}\n' "$id" "$status" "$status"
    exit 1
done < handlers/orders.txt
printf '{"code":"not_found","message":"there is no order %s"}\n' "$order"
exit 1
