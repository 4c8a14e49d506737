#!/bin/bash
# Compile and run the track statistics.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d "${TMPDIR:-.}/dwell_map.XXXXXX")
trap 'rm -rf "$build"' EXIT
gcc -O2 -g -fopenmp -o "$build/dwell_map" "$here/dwell_map.c" -lm
"$build/dwell_map"
