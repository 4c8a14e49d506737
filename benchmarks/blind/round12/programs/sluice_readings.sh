#!/bin/bash
# Discharge through the sluices of a canal: hand readings are converted with the weir formula,
# the automatic log is reduced to daily extremes.
set -e
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# hand readings: sluice;day;upstream_mm;downstream_mm;opening_mm
awk 'BEGIN {
    s = 12345
    for (i = 0; i < 2600; i++) {
        s = (s * 16807) % 2147483647
        up = 1800 + s % 700
        s = (s * 16807) % 2147483647
        down = 400 + s % 500
        s = (s * 16807) % 2147483647
        printf "S%02d;%d;%d;%d;%d\n", i % 13, i / 13, up, down, 100 + s % 900
    }
}' > "$work/hand.txt"

# automatic log: sluice;day;minute;level_mm
awk 'BEGIN {
    s = 777
    for (i = 0; i < 2200000; i++) {
        s = (s * 69069 + 1) % 4294967296
        printf "S%02d;%d;%d;%d\n", i % 13, int(i / 13) % 120, s % 1440, 900 + s % 1777
    }
}' > "$work/auto.txt"

discharge() {
    while IFS= read -r line; do
        sluice=$(echo "$line" | cut -d';' -f1)
        day=$(echo "$line" | cut -d';' -f2)
        flow=$(echo "$line" | awk -F';' '{ printf "%.5f", 0.61 * 2.4 * $5 / 1000 * sqrt(19.62 * ($3 - $4) / 1000) }')
        echo "$sluice;$day;$flow"
    done < "$work/hand.txt"
}

discharge > "$work/flow.txt"

sort -t';' -k1,1 -k2,2n -k4,4n -S 400M --parallel=2 "$work/auto.txt" |
    awk -F';' '{
        key = $1 ";" $2
        if (key != last) {
            if (last != "") print last ";" low ";" high
            low = $4
            last = key
        }
        high = $4
    } END { print last ";" low ";" high }' > "$work/daily.txt"

awk -F';' '{ n[$1]++; sum[$1] += $3; if ($3 > top[$1]) top[$1] = $3 }
    END { for (s in n) printf "%s readings %d mean %.3f max %.3f m3/s\n", s, n[s], sum[s] / n[s], top[s] }' \
    "$work/flow.txt" | sort | head -5
awk -F';' '{ range += $4 - $3 } END { printf "%d sluice days, mean range %.2f mm\n", NR, range / NR }' "$work/daily.txt"
