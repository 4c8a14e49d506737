#!/bin/bash
# build and run the flow model
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -g -fopenmp "$here/porous_flow.c" -o "$work/porous_flow" -lm
OMP_NUM_THREADS=2 OMP_PROC_BIND=true "$work/porous_flow"
