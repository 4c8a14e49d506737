#!/usr/bin/env bash
# Alphabetical roll of all persons named in the parish books.
#
# The entries come in the order of the books.  The roll is in the order of
# village, surname and year, as the printer wants it, with the number of
# mentions of each person and the gap to the mention before.
#
# usage: bash parish_roll.sh
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work

entries=$work/entries.txt
sorted=$work/sorted.txt
roll=$work/roll.txt

make_entries() {
    awk 'BEGIN {
        srand(1700)
        split("ba da fen gar hol kel lin mar nor ost pet rau", syl, " ")
        for (i = 0; i < 70000; i++)
            name[i] = syl[1 + int(rand() * 12)] syl[1 + int(rand() * 12)] \
                syl[1 + int(rand() * 12)] int(rand() * 90)
        for (i = 0; i < 5000000; i++)
            print "v" int(rand() * 160), name[int(rand() * 70000)], \
                1600 + int(rand() * 250), i
    }' > "$entries"
}

make_roll() {
    awk '
        { person = $1 " " $2 }
        person != last {
            if (NR > 1) print last, n, first, previous, widest
            last = person; n = 0; first = $3; previous = $3; widest = 0
        }
        {
            n++
            gap = $3 - previous
            if (gap > widest) widest = gap
            previous = $3
        }
        END { print last, n, first, previous, widest }
    ' "$1"
}

make_entries
sort -S 1500M --parallel=2 -k1,1 -k2,2 -k3,3n "$entries" > "$sorted"
make_roll "$sorted" > "$roll"

echo "entries: $(wc -l < "$entries")"
echo "persons: $(wc -l < "$roll")"
awk '{ n += $3; if ($6 > w) w = $6; if ($3 > m) m = $3 }
     END { printf "mean mentions %.4f, most %d, widest gap %d years\n", n / NR, m, w }' "$roll"
sha256sum "$roll" | cut -c 1-16
