#!/bin/bash
# k-mer table of simulated reads with standard tools
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
awk 'BEGIN { srand(1); split("A C G T", b, " "); for (r = 0; r < 30000; r++) { s = ""; for (i = 0; i < 100; i++) s = s b[int(rand()*4)+1]; print s } }' > "$tmp/reads"
echo "reads ready"
awk '{ for (i = 1; i <= length($0) - 10; i++) print substr($0, i, 11) }' "$tmp/reads" |
  LC_ALL=C sort -S 200M -T "$tmp" | uniq -c | awk '$1 > 3' | LC_ALL=C sort -k1,1nr | head -5
