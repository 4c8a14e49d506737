#!/bin/bash
# Spectrum of 21-mers in a set of reads: how many k-mers occur once, twice, ...
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 - "$work/reads.txt" <<'PY'
import random
import sys

rnd = random.Random(15)
genome = "".join(rnd.choices("ACGT", k=4_000_000))
repeat = genome[1000:6000]
genome = genome[:300_000] + repeat + genome[300_000:] + repeat
with open(sys.argv[1], "w") as out:
    for _ in range(110_000):
        start = rnd.randrange(len(genome) - 100)
        read = genome[start:start + 100]
        if rnd.random() < 0.3:
            spot = rnd.randrange(100)
            read = read[:spot] + rnd.choice("ACGT") + read[spot + 1:]
        out.write(read + "\n")
PY

export LC_ALL=C

awk '{ n = length($0) - 20; for (i = 1; i <= n; i++) print substr($0, i, 21) }' "$work/reads.txt" |
    sort -S 400M --parallel=2 -T "$work" |
    uniq -c |
    awk '{ count[$1]++; total += $1 }
         END { for (c in count) print c, count[c]; print "total", total > "/dev/stderr" }' \
    > "$work/spectrum.txt" 2> "$work/total.txt"

sort -k1,1n "$work/spectrum.txt" | head -n 6
awk '{ distinct += $2; if ($1 == 1) single = $2 }
     END { printf "distinct %d  seen once %.4f\n", distinct, single / distinct }' "$work/spectrum.txt"
cat "$work/total.txt"
