#!/bin/bash
# Gaps between the find numbers of potsherds, by trench.
# The find list is not in order; the gaps need it sorted by trench and number
# (both have a fixed width).
# Usage: bash potsherd_gaps.sh

set -e
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

finds() {
    awk 'BEGIN {
        srand(1904)
        for (i = 0; i < 6500000; i++) {
            trench = int(rand() * 90)
            printf "T%02d\t%09d\t%.2f\n", trench, int(rand() * 900000000), 2 + 30 * rand()
        }
    }'
}

sorted_finds() {
    sort --parallel=2 -S 1G -T "$work"
}

gaps() {
    awk -F'\t' '
        $1 == last {
            gap = $2 - number
            n[$1]++
            s[$1] += gap
            if (gap > widest[$1]) widest[$1] = gap
            if (gap == 0) double[$1]++
        }
        { last = $1; number = $2; weight[$1] += $3 }
        END {
            for (t in n)
                printf "%s %d %.3f %d %d %.1f\n", t, n[t] + 1, s[t] / n[t], widest[t], double[t], weight[t]
        }'
}

finds | sorted_finds | gaps | sort > "$work/trenches.txt"

sort -k4,4nr -k1,1 "$work/trenches.txt" | head -n 3
awk '{ n += $2; d += $5; w += $6 } END { printf "%d trenches, %d sherds, %d double numbers, %.1f kg\n", NR, n, d, w / 1000 }' \
    "$work/trenches.txt"
