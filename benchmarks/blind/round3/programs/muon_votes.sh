#!/bin/bash
set -eu
src=$(cd "$(dirname "$0")" && pwd)/muon_votes.c
bin=$(mktemp "${TMPDIR:-.}/muon_votes.XXXXXX")
trap 'rm -f "$bin"' EXIT
gcc -O2 -g -fopenmp "$src" -lm -o "$bin"
"$bin"
