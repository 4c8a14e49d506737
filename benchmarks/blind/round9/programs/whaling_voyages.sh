#!/bin/bash
# Mean catch and track of each ship from the compressed daily abstracts of old whaling logbooks.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 3.2 million abstracts: ship, day, latitude, longitude, whales seen, barrels
awk 'BEGIN {
    seed = 12345
    for (i = 0; i < 3200000; i++) {
        seed = (seed * 16807) % 2147483647
        ship = seed % 26
        lat = (seed % 1400) / 10 - 70
        lon = (seed % 3599) / 10 - 180
        seen = (seed % 17 == 0) ? seed % 5 : 0
        printf "ship%02d,%d,%.1f,%.1f,%d,%d\n", ship, i / 26, lat, lon, seen, seen * (seed % 40)
    }
}' | gzip -1 > "$work/abstracts.csv.gz"

ships=$(seq -f 'ship%02g' 0 25)

summary() {
    awk -F, -v OFS=, '
        { n[$1]++; seen[$1] += $5; oil[$1] += $6; if ($3 < low[$1]) low[$1] = $3 }
        END { for (s in n) print s, n[s], seen[s], oil[s], low[s] }'
}

for ship in $ships; do
    zcat "$work/abstracts.csv.gz" | grep "^$ship," | summary
done > "$work/summary.csv"

echo "ships: $(echo "$ships" | wc -l)"
echo "best ships by oil:"
sort -t, -k4,4nr -k1,1 "$work/summary.csv" | head -n 3
echo "southernmost:"
sort -t, -k5,5n -k1,1 "$work/summary.csv" | head -n 1
