#!/bin/bash
# build and run the canopy light model
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -g -fopenmp "$here/photon_canopy.c" -o "$work/photon_canopy" -lm
OMP_NUM_THREADS=2 "$work/photon_canopy"
