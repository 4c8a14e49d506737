#!/bin/bash
# Relative abundance of diatom taxa down a lake core, from the counting log of the microscopes.
set -e
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the log: slide, depth in cm, taxon, valve length in micrometres
awk 'BEGIN {
    srand(17)
    for (i = 0; i < 1500000; i++) {
        d = int(rand() * 240)
        t = int(rand() * rand() * 36)
        printf "s%05d\t%d\ttaxon%02d\t%.2f\n", i / 400, d, t, 8 + 40 * rand() + t
    }
}' | gzip -1 > "$work/counts.tsv.gz"

gzip -dc "$work/counts.tsv.gz" | cut -f 3 | sort -u > "$work/taxa"
gzip -dc "$work/counts.tsv.gz" |
    awk -F '\t' '{ n[int($2 / 10)]++ } END { for (z in n) print z, n[z] }' |
    sort -n > "$work/totals"

# one table per taxon: zone of 10 cm, valves, mean length
while read -r taxon; do
    gzip -dc "$work/counts.tsv.gz" |
        awk -F '\t' -v taxon="$taxon" '
            $3 == taxon { z = int($2 / 10); n[z]++; s[z] += $4 }
            END { for (z in n) printf "%d %d %.3f\n", z, n[z], s[z] / n[z] }' |
        sort -n > "$work/$taxon.zones"
done < "$work/taxa"

# zone in which each taxon is most abundant, relative to all valves of the zone
for table in "$work"/*.zones; do
    taxon=$(basename "$table" .zones)
    join -j 1 <(sort -k1,1 "$work/totals") <(sort -k1,1 "$table") |
        awk -v taxon="$taxon" '
            $3 / $2 > best { best = $3 / $2; zone = $1; len = $4 }
            END { printf "%s %d %.5f %.2f\n", taxon, zone, best, len }'
done > "$work/optima"

echo "taxa $(wc -l < "$work/taxa")  zones $(wc -l < "$work/totals")"
sort -k3,3nr "$work/optima" | head -4
