#!/usr/bin/env bash
# Summaries of plankton net counts: by station and depth, by species, by cruise.
set -euo pipefail
export LC_ALL=C

dir=$(mktemp -d "${TMPDIR:-.}/plankton.XXXXXX")
trap 'rm -rf "$dir"' EXIT

awk 'BEGIN {
    srand(1910)
    for (i = 0; i < 1400000; i++)
        printf "st%03d,%d,sp%04d,%d,%d\n", 400 * rand(), 5 * int(60 * rand()), 1500 * rand(), \
            1 + 40 * rand() * rand(), 1950 + 60 * rand()
}' > "$dir/counts.csv"

sort -t, -k1,1 -k2,2n -T "$dir" "$dir/counts.csv" > "$dir/by_station.csv"
awk -F, '
    $1 != st || $2 != dep { if (NR > 1) { print st "," dep "," n; layers++ } st = $1; dep = $2; n = 0 }
    { n += $4 }
    END { print st "," dep "," n }' "$dir/by_station.csv" > "$dir/layers.csv"

sort -t, -k3,3 -k5,5n -T "$dir" "$dir/counts.csv" > "$dir/by_species.csv"
awk -F, '
    $3 != sp { if (NR > 1) print sp "," first "," last "," n; sp = $3; first = $5; n = 0 }
    { last = $5; n += $4 }
    END { print sp "," first "," last "," n }' "$dir/by_species.csv" > "$dir/ranges.csv"

sort -t, -k5,5n -k1,1 -k3,3 -T "$dir" "$dir/counts.csv" > "$dir/by_cruise.csv"
awk -F, '
    { key = $5 "," $1; if (key != old) { if (NR > 1) print old "," kinds; old = key; kinds = 0; sp = "" }
      if ($3 != sp) { kinds++; sp = $3 } }
    END { print old "," kinds }' "$dir/by_cruise.csv" > "$dir/richness.csv"

gzip -1 -c "$dir/by_cruise.csv" > "$dir/by_cruise.csv.gz"
cksum < "$dir/by_cruise.csv"

wc -l < "$dir/layers.csv"
sort -t, -k4,4nr "$dir/ranges.csv" > "$dir/top.csv"
head -n 2 "$dir/top.csv"
awk -F, '{ s += $3 } END { printf "cruise stations %d  mean richness %.4f\n", NR, s / NR }' "$dir/richness.csv"
