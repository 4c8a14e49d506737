#!/bin/sh
# Attendance rolls of choirs: merge rehearsals and concerts, find faithful singers.
set -e
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Two transcripts of the rolls: singer, choir, week.
roll() {
    awk -v seed="$1" -v rows="$2" 'BEGIN {
        s = seed
        for (i = 0; i < rows; i++) {
            s = (s * 16807) % 2147483647
            a = s
            s = (s * 16807) % 2147483647
            printf "N%06d\tC%03d\tW%04d\n", a % 300000, (a % 300000) % 211, s % 1500
        }
    }'
}
roll 11 6000000 > "$work/rehearsals.tsv" &
first=$!
roll 29 3500000 > "$work/concerts.tsv" &
second=$!
wait "$first"
wait "$second"

# One sorted list without double entries of each transcript.
sort -u -S 700M --parallel=2 -T "$work" "$work/rehearsals.tsv" > "$work/r.tsv"
sort -u -S 700M --parallel=2 -T "$work" "$work/concerts.tsv" > "$work/c.tsv"
echo "entries: $(wc -l < "$work/r.tsv") rehearsals, $(wc -l < "$work/c.tsv") concerts"

# Weeks in which a singer came to both.
comm -12 "$work/r.tsv" "$work/c.tsv" | wc -l | awk '{ print "both in the same week:", $1 }'

# Count of weeks per singer, joined over both transcripts.
count() {
    awk -F'\t' '$1 != last { if (NR > 1) print last "\t" n; last = $1; n = 0 } { n++ } END { print last "\t" n }' "$1"
}
count "$work/r.tsv" > "$work/rn.tsv" &
first=$!
count "$work/c.tsv" > "$work/cn.tsv" &
second=$!
wait "$first"
wait "$second"
join "$work/rn.tsv" "$work/cn.tsv" | awk '
    { r += $2; c += $3; n++; if ($2 + $3 > best) { best = $2 + $3; who = $1 } }
    END { printf "singers in both: %d, mean %.2f and %.2f weeks\n", n, r / n, c / n
          printf "most faithful: %s with %d weeks\n", who, best }'

# Choirs by the number of entries.
sort -m "$work/r.tsv" "$work/c.tsv" | awk -F'\t' '{ n[$2]++ } END { for (c in n) print n[c], c }' \
    | sort -k1,1nr -k2 | awk 'NR <= 3 { print "  " $2, $1 }'
