#!/bin/sh
# Compile and run the fog model.
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -fopenmp -o "$work/fog" "$here/fog_droplet_settling.c" -lm
OMP_NUM_THREADS=2 "$work/fog"
