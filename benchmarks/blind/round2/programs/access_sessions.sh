#!/usr/bin/env bash
# Sessions by visitor from compressed access logs: a new session starts after 30 minutes of silence.
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_log() { # number of the log
    awk -v s="$1" 'BEGIN {
        srand(s)
        for (i = 0; i < 260000; i++) {
            t = s * 86400 + int(i * 86400 / 260000)
            v = int(rand() * rand() * 40000)
            printf "%d\t10.%d.%d.%d\tGET\t/page/%d\t%d\t%d\n", t, v % 7, int(v / 7) % 250, int(v / 1750), \
                   int(rand() * 900), (rand() < 0.03) ? 404 : 200, int(rand() * 90000)
        }
    }' | gzip -1 > "$work/access-$1.log.gz"
}

for n in 1 2; do
    make_log "$n" &
done
wait
# Further days are the same traffic at later times.
for n in $(seq 3 26); do
    cp "$work/access-$((n % 2 + 1)).log.gz" "$work/access-$n.log.gz"
done

sessions() {
    awk -F'\t' -v gap=1800 '
        $1 != who { if (n) print who "\t" n "\t" bytes; who = $1; n = 0; bytes = 0; last = -1e9 }
        { if ($2 - last > gap) n++; last = $2; bytes += $3 }
        END { print who "\t" n "\t" bytes }'
}

for n in $(seq 1 26); do
    gzip -dc "$work/access-$n.log.gz" | awk -F'\t' -v OFS='\t' -v d="$n" '$5 == 200 { print $2, $1 + d * 86400, $6 }'
done |
    sort -t "$(printf '\t')" -k1,1 -k2,2n --parallel=2 -S 300M -T "$work" |
    sessions |
    tee "$work/sessions.tsv" |
    awk -F'\t' '{ v++; s += $2; b += $3; if ($2 > m) m = $2 }
        END { printf "%d visitors, %d sessions, most for one visitor %d, %.1f MB\n", v, s, m, b / 1e6 }'

sort -t "$(printf '\t')" -k2,2nr -k1,1 "$work/sessions.tsv" | head -n 3 || true
