#!/bin/bash
# Count bytes per client from the web log of the group server
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk 'BEGIN { srand(3); for (i = 0; i < 4200; i++) printf "10.0.%d.%d GET /data/%d.nc 200 %d\n", rand()*4, rand()*12, rand()*900, rand()*100000 }' > "$work/access.log"

# busiest files over the archived months
awk 'BEGIN { srand(4); for (i = 0; i < 2200000; i++) print "/data/" int(rand()*200000) ".nc", int(rand()*100000) }' > "$work/old"
LC_ALL=C sort "$work/old" | awk '{ if ($1 != p) { print n, p; n = 0; p = $1 } n++ }' | LC_ALL=C sort -k1,1nr | head -3

n=0
while read -r line; do
  client=$(echo "$line" | cut -d' ' -f1)
  bytes=$(echo "$line" | awk '{ print $5 }')
  echo "$client $bytes" >> "$work/pairs"
  n=$((n + 1))
  if [ $((n % 500)) -eq 0 ]; then echo "$n lines"; fi
done < "$work/access.log"

sort "$work/pairs" | awk '{ s[$1] += $2 } END { for (c in s) print c, s[c] }' | sort -k2,2nr | head -5
