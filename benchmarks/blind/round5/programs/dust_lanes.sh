#!/usr/bin/env bash
# Light through a dusty disc: builds the simulation and runs it.
#
# usage: bash dust_lanes.sh [photons]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gcc -O2 -std=gnu11 -Wall -fopenmp -o "$work/dust" "$here/dust_lanes.c" -lm
export OMP_NUM_THREADS=2
"$work/dust" "${1:-14000000}"
