#!/bin/sh
# Answers orders.list: the input is one line of JSON on standard input, the output is
# JSON on standard output. The input is valid by its schema when it comes here: an
# object with one member, "customer", of the form customer_123.
set -eu
read -r input
customer=${input#*:}
customer=${customer#*\"}
customer=${customer%%\"*}

# The orders are in a file beside this one: customer, id, total, status.
separator='['
while read -r owner id total status; do
    [ "$owner" = "$customer" ] || continue
    printf '%s{"id":"%s","customer":"%s","total":%s,"status":"%s"}' "$separator" "$id" "$owner" "$total" "$status"
    separator=','
done < handlers/orders.txt
[ "$separator" = ',' ] || printf '['
printf ']\n'
