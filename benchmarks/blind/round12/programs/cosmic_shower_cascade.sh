#!/bin/bash
# Builds the shower code and runs it on two threads.
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cc -O2 -g -fopenmp "$here/cosmic_shower_cascade.c" -o "$build/cosmic_shower_cascade" -lm
OMP_NUM_THREADS=2 "$build/cosmic_shower_cascade"
