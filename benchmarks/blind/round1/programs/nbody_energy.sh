#!/bin/bash
here=$(cd "$(dirname "$0")" && pwd)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cc -O2 -fopenmp -o "$bin/nbody_energy" "$here/nbody_energy.c" -lm && "$bin/nbody_energy"
