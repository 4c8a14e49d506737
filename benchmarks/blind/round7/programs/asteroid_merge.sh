#!/bin/bash
# Merge the detections of three surveys into one list of asteroids: number of nights and brightest magnitude.
set -e -o pipefail
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

detections() {
    awk -v seed="$1" -v survey="$2" 'BEGIN {
        srand(seed)
        for (i = 0; i < 2600000; i++)
            printf "A%06d\t%05d\t%.2f\t%s\n", int(rand() * rand() * 400000), 58000 + int(rand() * 1800), 15 + 7 * rand(), survey
    }'
}

# the nightly files of the surveys
detections 1 north > "$work/north.tsv" &
detections 2 south > "$work/south.tsv" &
wait
detections 3 space > "$work/space.tsv"

# each file is sorted once by designation and night; then the three are merged
for survey in north south space; do
    sort --parallel=2 -S 400M -T "$work" -k1,1 -k2,2 "$work/$survey.tsv" -o "$work/$survey.sorted"
    rm "$work/$survey.tsv"
done

sort -m -k1,1 -k2,2 "$work/north.sorted" "$work/south.sorted" "$work/space.sorted" |
    awk -F '\t' '
        $1 != name { if (name != "") print name, nights, best, seen; name = $1; nights = 0; best = 99; seen = 0; night = "" }
        $2 != night { nights++; night = $2 }
        $3 < best { best = $3 }
        { seen++ }
        END { print name, nights, best, seen }' > "$work/objects"

awk '{ n += $2; s += $4; if ($2 > top) { top = $2; who = $1 } if ($3 < bright) bright = $3 }
     BEGIN { bright = 99 }
     END { printf "objects %d  detections %d  nights each %.2f\n", NR, s, n / NR
           printf "most nights %d (%s)  brightest %.2f\n", top, who, bright }' "$work/objects"
