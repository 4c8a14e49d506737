#!/bin/sh
# Audit of old gasworks meter sheets: check a sample of entries against the monthly totals.
set -e
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The transcribed sheets: sheet number, district, month, reading before, reading after, clerk.
awk 'BEGIN {
    s = 17
    for (i = 1; i <= 400000; i++) {
        s = (s * 16807) % 2147483647
        before = s % 90000
        used = 20 + int(s / 7) % 400
        printf "S%07d;D%02d;%02d;%d;%d;clerk%02d;house %d\n", i, s % 24, 1 + int(s / 13) % 12, before, before + used, int(s / 31) % 17, i % 9973
    }
}' > "$work/sheets.txt"

# The sample: which lines of the transcript the auditor wants to see.
awk 'BEGIN { for (k = 1; k <= 420; k++) print (k * 947) % 400000 + 1 }' | sort -n > "$work/sample.txt"

# Totals of each district.
awk -F';' '{ used[$2] += $5 - $4; n[$2]++ }
    END { for (d in used) printf "%s %d %.2f\n", d, n[d], used[d] / n[d] }' \
    "$work/sheets.txt" | sort > "$work/districts.txt"

# Check each sampled entry.
bad=0
checked=0
: > "$work/audit.txt"
while read -r number; do
    entry=$(sed -n "${number}p" "$work/sheets.txt")
    IFS=';' read -r sheet district month before after clerk house <<LINE
$entry
LINE
    used=$((after - before))
    checked=$((checked + 1))
    if [ "$used" -gt 400 ]; then
        bad=$((bad + 1))
    fi
    echo "$district $used $clerk" >> "$work/audit.txt"
done < "$work/sample.txt"

echo "entries checked: $checked, suspicious: $bad"
echo "districts: $(wc -l < "$work/districts.txt")"
sort "$work/audit.txt" | awk '{ n[$1]++; u[$1] += $2 } END { for (d in n) print d, n[d], u[d] / n[d] }' \
    | sort > "$work/sampled.txt"
join "$work/districts.txt" "$work/sampled.txt" \
    | awk '{ d = $5 - $3; if (d < 0) d = -d; if (d > m) { m = d; w = $1 } } END { printf "largest deviation: %s %.1f\n", w, m }'
