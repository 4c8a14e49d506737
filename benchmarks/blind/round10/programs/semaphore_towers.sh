#!/bin/bash
# Delays of messages at the towers of an optical telegraph line, from the year's log.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

towers=38
messages=1500000

# log: tower, minute of the year, code of the signal, seconds of delay, weather
awk -v towers=$towers -v n=$messages 'BEGIN {
    srand(1794)
    split("clear haze rain fog", weather, " ")
    for (k = 0; k < n; k++) {
        t = int(rand() * towers)
        w = int(rand() * 4) + 1
        d = int(8 + 10 * w * rand() + 4 * rand() * (t % 5))
        printf "tower%02d %d %d %d %s\n", t, k % 525600, int(rand() * 8464), d, weather[w]
    }
}' | gzip -1 > "$work/year.log.gz"

tower_summary() {
    local tower=$1
    gzip -dc "$work/year.log.gz" | awk -v tower="$tower" '
        $1 == tower {
            n++; sum += $4
            if ($4 > most) most = $4
            if ($5 == "fog") { fog++; fogsum += $4 }
        }
        END { printf "%s %d %.3f %d %.3f\n", tower, n, sum / n, most, fogsum / fog }'
}

for k in $(seq 0 $((towers - 1))); do
    tower_summary "$(printf 'tower%02d' "$k")"
done > "$work/summary.txt"

echo "towers: $(wc -l < "$work/summary.txt")"
echo "slowest tower:"
sort -k3,3nr -k1,1 "$work/summary.txt" | head -n 1
echo "slowest in fog:"
sort -k5,5nr -k1,1 "$work/summary.txt" | head -n 1
awk '{ n += $2 } END { print "messages:", n }' "$work/summary.txt"
