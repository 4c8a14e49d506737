#!/usr/bin/env bash
# Pressure on the panels of a ship hull: builds the solver and runs it.
#
# usage: bash hull_mesh.sh [panels] [steps]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

CC=${CC:-gcc}
CFLAGS="-std=gnu11 -g -Wall -Wextra -fopenmp"
LDLIBS="-lm"

$CC $CFLAGS -o "$work/hull" "$here/hull_mesh.c" $LDLIBS

export OMP_NUM_THREADS=2
"$work/hull" "${1:-20000}" "${2:-7}"
