#!/bin/bash
# Tidy the sample sheet of a sequencing centre and join it to the read counts.
#
#   sheet.csv    barcode,project,tissue,date(dd/mm/yyyy),volume in ul
#   counts.tsv   barcode, lane, reads  (one line for each lane and tile)
set -euo pipefail
export LC_ALL=C

SAMPLES=${SAMPLES:-1600}
TILES=${TILES:-1000}

work=$(mktemp -d "${TMPDIR:-.}/sheet.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
work=$PWD

make_input() {
    awk -v n="$SAMPLES" 'BEGIN {
        srand(4); split("Liver KIDNEY Brain heart Lung", tissue, " ")
        for (i = 1; i <= n; i++)
            printf "BC%06d,prj-%02d,%s,%02d/%02d/%d,%d\n", (i * 7919) % 1000003,
                1 + int(rand() * 40), tissue[1 + int(rand() * 5)],
                1 + int(rand() * 28), 1 + int(rand() * 12), 2019 + int(rand() * 5),
                5 + int(rand() * 90)
    }' > sheet.csv
    awk -v n="$SAMPLES" -v tiles="$TILES" 'BEGIN {
        srand(9)
        for (t = 1; t <= tiles; t++)
            for (k = 0; k < 2400; k++)
                printf "BC%06d\t%d\t%d\n", ((1 + (t * 2400 + k * 13) % n) * 7919) % 1000003,
                    1 + t % 8, 100 + int(rand() * 900)
    }' > counts.tsv
}

tidy_sheet() {
    while IFS= read -r line; do
        barcode=$(echo "$line" | cut -d, -f1)
        project=$(echo "$line" | cut -d, -f2 | tr a-z A-Z)
        tissue=$(echo "$line" | cut -d, -f3 | tr A-Z a-z)
        date=$(echo "$line" | cut -d, -f4 | sed -E 's#(..)/(..)/(....)#\3-\2-\1#')
        volume=$(echo "$line" | cut -d, -f5)
        printf '%s\t%s\t%s\t%s\t%s\n' "$barcode" "$project" "$tissue" "$date" "$volume"
    done < sheet.csv | sort -k1,1 > sheet.tsv
}

sum_counts() {
    sort -k1,1 -k2,2n -S 256M counts.tsv |
        awk -F'\t' '
            $1 != last { if (last != "") print last "\t" sum; last = $1; sum = 0 }
            { sum += $3 }
            END { print last "\t" sum }' > totals.tsv
}

report() {
    join -t "$(printf '\t')" sheet.tsv totals.tsv > joined.tsv
    echo "samples: $(wc -l < joined.tsv)"
    awk -F'\t' '{ n[$3]++; reads[$3] += $6; if ($5 < 10) low++ }
        END { for (t in n) printf "%s\t%d\t%.0f\n", t, n[t], reads[t] / n[t]
              printf "low volume\t%d\n", low }' joined.tsv | sort
    echo "first batch: $(cut -f4 joined.tsv | sort | head -n 1)"
    echo "checksum: $(cksum < joined.tsv | cut -d' ' -f1)"
}

make_input
tidy_sheet
sum_counts
report
