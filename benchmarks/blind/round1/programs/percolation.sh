#!/bin/bash
here=$(cd "$(dirname "$0")" && pwd)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cc -O2 -fopenmp -o "$bin/percolation" "$here/percolation.c" -lm && "$bin/percolation"
