#!/usr/bin/env bash
# Daily tonnage and speed of the ships in a harbour.
#
# movements.csv : epoch,ship,berth,tons   one line for each arrival
# track.csv     : ship,knots,heading      positions received by radio
#
# usage: bash harbour_traffic.sh
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

movements=$work/movements.csv
track=$work/track.csv
daily=$work/daily.csv

make_movements() {
    awk 'BEGIN {
        srand(11)
        t = 1640995200
        for (i = 0; i < 5500; i++) {
            t += int(rand() * 11000)
            printf "%d,S%03d,B%02d,%d\n", t, int(rand() * 240), \
                int(rand() * 18), 200 + int(rand() * rand() * 60000)
        }
    }' > "$movements"
}

make_track() {
    awk 'BEGIN {
        srand(12)
        for (i = 0; i < 4000000; i++)
            printf "S%03d,%.1f,%d\n", int(rand() * 240), rand() * 22, rand() * 360
    }' > "$track"
}

# epoch,ship,berth,tons -> date,ship,berth,tons
add_dates() {
    while IFS=, read -r epoch ship berth tons; do
        day=$(date -u -d "@$epoch" +%F)
        printf '%s,%s,%s,%s\n' "$day" "$ship" "$berth" "$tons"
    done < "$movements"
}

summarise_days() {
    awk -F, '
        { tons[$1] += $4; calls[$1]++ }
        END { for (d in tons) printf "%s,%d,%d\n", d, tons[d], calls[d] }
    ' "$daily" | sort
}

# Mean speed under way and the share of positions at anchor.
summarise_track() {
    awk -F, '
        $2 < 0.5 { anchor[$1]++; next }
        { knots[$1] += $2; n[$1]++ }
        END {
            for (s in n) { mean = knots[s] / n[s]; sum += mean; ships++
                           still += anchor[s]; all += anchor[s] + n[s] }
            printf "ships: %d, mean speed: %.3f knots, at anchor: %.4f\n", \
                ships, sum / ships, still / all
        }' "$track"
}

make_movements
make_track

add_dates > "$daily"
summarise_days > "$work/days.csv"

echo "days with arrivals: $(wc -l < "$work/days.csv")"
echo "heaviest days (date,tons,calls):"
sort -t, -k2,2nr -k1,1 "$work/days.csv" > "$work/heavy.csv"
head -n 3 "$work/heavy.csv"
summarise_track
