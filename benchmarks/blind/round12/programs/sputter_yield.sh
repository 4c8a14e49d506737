#!/bin/bash
# Builds the cascade code and runs it on two threads.
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cc -O2 -g -fopenmp "$here/sputter_yield.c" -o "$build/sputter_yield" -lm
OMP_NUM_THREADS=2 "$build/sputter_yield"
