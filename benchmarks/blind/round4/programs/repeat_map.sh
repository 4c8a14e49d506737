#!/usr/bin/env bash
set -e
src="$(cd "$(dirname "$0")" && pwd)/repeat_map.c"
bin="${TMPDIR:-.}/repeat_map.$$"
trap 'rm -f "$bin"' EXIT
gcc -O2 -fopenmp "$src" -o "$bin"
"$bin"
