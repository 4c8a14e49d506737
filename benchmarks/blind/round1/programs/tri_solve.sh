#!/bin/bash
here=$(cd "$(dirname "$0")" && pwd)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cc -O2 -fopenmp -o "$bin/tri_solve" "$here/tri_solve.c" -lm && "$bin/tri_solve"
