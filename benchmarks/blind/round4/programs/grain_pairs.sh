#!/usr/bin/env bash
# Build and run the packing analysis.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-.}/grain.XXXXXX")
trap 'rm -rf "$work"' EXIT
gcc -O2 -fopenmp -o "$work/grain_pairs" "$here/grain_pairs.c" -lm
"$work/grain_pairs"
