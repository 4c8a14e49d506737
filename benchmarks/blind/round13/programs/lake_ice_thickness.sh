#!/bin/sh
# Compile and run the ice model.
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O3 -march=native -fopenmp -o "$work/ice" "$here/lake_ice_thickness.c" -lm
OMP_NUM_THREADS=2 "$work/ice"
