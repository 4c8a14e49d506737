#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-.}/seiche.XXXXXX")
trap 'rm -rf "$work"' EXIT
gcc -O3 -march=native -fopenmp -o "$work/seiche" "$here/seiche.c" -lm
"$work/seiche"
