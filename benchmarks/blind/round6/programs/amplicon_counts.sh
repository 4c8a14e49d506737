#!/bin/bash
# Read statistics for each sample barcode of an amplicon run.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

SAMPLES=40

python3 - "$work/reads.tsv" "$SAMPLES" <<'PY'
import random
import sys

path, samples = sys.argv[1], int(sys.argv[2])
rnd = random.Random(6)
barcodes = ["".join(rnd.choice("ACGT") for _ in range(10)) for _ in range(samples)]
inserts = ["".join(rnd.choice("ACGT") for _ in range(rnd.randrange(50, 70))) for _ in range(4000)]
state = 12345
with open(path, "w") as out:
    for block in range(120):
        lines = []
        for _ in range(10000):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            read = inserts[state % 4000]
            lines.append(f"{barcodes[(state >> 12) % samples]}\t{len(read)}\t{20 + (state >> 7) % 20}\t{read}\n")
        out.writelines(lines)
with open(path + ".barcodes", "w") as out:
    out.write("\n".join(sorted(barcodes)) + "\n")
PY
gzip -1 "$work/reads.tsv"

summarise() {
    while read -r barcode; do
        gzip -dc "$work/reads.tsv.gz" |
            awk -F'\t' -v b="$barcode" \
                '$1 == b { n++; len += $2; q += $3; if ($3 >= 30) good++ }
                 END { printf "%s\t%d\t%.3f\t%.3f\t%.4f\n", b, n, len / n, q / n, good / n }'
    done < "$work/reads.tsv.barcodes"
}

summarise > "$work/summary.tsv"
sort -k2,2nr -k1,1 "$work/summary.tsv" | head -n 5
awk -F'\t' '{ total += $2 } END { print "reads", total, "samples", NR }' "$work/summary.tsv"
