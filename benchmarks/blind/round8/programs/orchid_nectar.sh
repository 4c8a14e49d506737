#!/bin/bash
# Nectar volumes of orchid flowers: mean, spread and best hour per species.
# Usage: bash orchid_nectar.sh

set -e
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

visits="$work/visits.csv.gz"

make_visits() {
    awk 'BEGIN {
        srand(31)
        split("ophrys orchis dactylorhiza anacamptis gymnadenia platanthera epipactis cephalanthera neottia serapias himantoglossum goodyera spiranthes listera liparis corallorhiza", name, " ")
        for (i = 0; i < 2600000; i++) {
            k = 1 + int(rand() * 16)
            hour = int(rand() * 24)
            volume = 1.5 + 0.2 * k + rand() - 0.02 * (hour - 6) * (hour - 6) / 4
            if (volume < 0) volume = 0
            printf "%d,%s,%d,%.3f,%d\n", i, name[k], hour, volume, int(rand() * 900)
        }
    }' | gzip -1 > "$visits"
}

species_list() {
    zcat "$visits" | head -n 20000 | cut -d, -f2 | sort -u
}

one_species() {
    zcat "$visits" | awk -F, -v want="$1" '
        $2 == want {
            n++; s += $4; q += $4 * $4
            hn[$3]++; hs[$3] += $4
        }
        END {
            best = -1
            for (h = 0; h < 24; h++)
                if (hn[h] && hs[h] / hn[h] > best) { best = hs[h] / hn[h]; hour = h }
            mean = s / n
            printf "%-16s %8d %8.4f %8.4f %4d\n", want, n, mean, sqrt(q / n - mean * mean), hour
        }'
}

make_visits
for species in $(species_list 2>/dev/null); do
    one_species "$species" >> "$work/report.txt"
done

sort -k3,3nr "$work/report.txt" | head -n 4
awk '{ n += $2 } END { printf "%d species, %d flowers\n", NR, n }' "$work/report.txt"
