#!/bin/bash
set -eu
dir=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp "${TMPDIR:-.}/spin_sheet.XXXXXX")
trap 'rm -f "$out"' EXIT
gcc -O2 -g -fopenmp "$dir/spin_sheet.c" -lm -o "$out"
"$out"
