#!/bin/bash
# build and run the bioturbation model; the restart file goes to a temporary folder
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -g -fopenmp "$here/sediment_mixing.c" -o "$work/sediment_mixing" -lm
OMP_NUM_THREADS=2 "$work/sediment_mixing" "$work"
