#!/bin/sh
# Compile and run the wake model.
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -fopenmp -o "$work/wakes" "$here/wind_farm_wakes.c" -lm
OMP_NUM_THREADS=2 "$work/wakes"
