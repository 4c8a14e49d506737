#!/bin/bash
# Count the k-mers of a small read set, for two lengths, and compare the tables.
set -euo pipefail
export LC_ALL=C

READS=${READS:-52000}
LENGTH=110

work=$(mktemp -d "${TMPDIR:-.}/kmer.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
work=$PWD

# Reads from a genome of 400 kb, one in three hundred bases is wrong.
make_reads() {
    awk -v n="$READS" -v len="$LENGTH" 'BEGIN {
        srand(15); size = 400000; split("A C G T", base, " ")
        piece = ""; genome = ""
        for (i = 0; i < size; i++) {
            piece = piece base[1 + int(rand() * 4)]
            if (length(piece) >= 4000) { genome = genome piece; piece = "" }
        }
        for (r = 0; r < n; r++) {
            read = substr(genome, 1 + int(rand() * (size - len)), len)
            if (rand() < len / 300) {
                at = 1 + int(rand() * len)
                read = substr(read, 1, at - 1) base[1 + int(rand() * 4)] substr(read, at + 1)
            }
            print read
        }
    }' > reads.txt
}

kmers() {
    awk -v k="$1" '{ for (i = 1; i <= length($0) - k + 1; i++) print substr($0, i, k) }' reads.txt
}

table() {
    kmers "$1" | sort -S 700M | uniq -c | awk '{ print $2 "\t" $1 }' > "table.$1"
}

spectrum() {
    cut -f2 "table.$1" | sort -n | uniq -c |
        awk -v k="$1" '{ kinds += $1; total += $1 * $2
                         if ($2 == 1) once = $1
                         if ($2 > 4 && $1 > top) { top = $1; depth = $2 } }
             END { printf "k=%d: %d kinds of %d, seen once %d, depth %d\n",
                          k, kinds, total, once, depth }'
}

# 21-mers that are prefixes of a solid 31-mer
shared() {
    awk -F'\t' '$2 > 4 { print substr($1, 1, 21) }' table.31 | sort -u -S 300M |
        join -t "$(printf '\t')" - table.21 |
        awk -F'\t' '{ n++; s += $2 } END { printf "shared: %d, mean count %.3f\n", n, s / n }'
}

make_reads
echo "reads: $(wc -l < reads.txt)"
table 21
table 31
spectrum 21
spectrum 31
shared
