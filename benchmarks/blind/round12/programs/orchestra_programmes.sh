#!/bin/bash
# Works and conductors in the printed programmes of orchestras: two large lists are joined by programme number.
set -e
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# programmes: number, season, conductor
awk 'BEGIN {
    s = 4711
    for (i = 0; i < 1300000; i++) {
        s = (s * 16807) % 2147483647
        printf "P%08d\t%d\tC%03d\n", s % 90000000, 1880 + i % 90, int(s / 7) % 320
    }
}' > "$work/programmes.tsv" &

# works played: number of the programme, composer, minutes
awk 'BEGIN {
    s = 4711; t = 99
    for (i = 0; i < 3900000; i++) {
        if (i % 3 == 0) s = (s * 16807) % 2147483647
        t = (t * 48271) % 2147483647
        printf "P%08d\tK%04d\t%d\n", s % 90000000, int(sqrt(t % 4000000)), 5 + t % 50
    }
}' > "$work/works.tsv" &
wait

sort -k1,1 -S 250M --parallel=1 "$work/programmes.tsv" > "$work/programmes.sorted" &
sort -k1,1 -S 250M --parallel=1 "$work/works.tsv" > "$work/works.sorted" &
wait

join -t "$(printf '\t')" "$work/programmes.sorted" "$work/works.sorted" |
    awk -F'\t' '{
        minutes[$3] += $5
        pair[$3 " " $4]++
        season[$2] += $5
    }
    END {
        for (c in minutes) print "minutes", c, minutes[c]
        for (p in pair) if (pair[p] > 20) print "pair", p, pair[p]
        for (y in season) print "season", y, season[y]
    }' > "$work/sums.txt"

echo "busiest conductors"
grep '^minutes' "$work/sums.txt" | sort -k3,3nr -k2,2 | sed -n 1,3p
echo "commonest pairs"
grep '^pair' "$work/sums.txt" | sort -k4,4nr -k2,3 | sed -n 1,3p
grep '^season' "$work/sums.txt" | awk '{ n++; s += $3 } END { printf "%d seasons, %.1f minutes each\n", n, s / n }'
