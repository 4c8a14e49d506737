#!/usr/bin/env bash
# Vortices in a tidal strait: builds the reference solver and runs it.
#
# usage: bash tidal_gyres.sh [vortices] [steps]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gcc -O3 -march=native -ffast-math -std=gnu11 -Wall -fopenmp \
    -o "$work/gyres" "$here/tidal_gyres.c" -lm
export OMP_NUM_THREADS=2
"$work/gyres" "${1:-16000}" "${2:-350}"
