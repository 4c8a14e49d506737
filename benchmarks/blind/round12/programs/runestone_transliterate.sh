#!/bin/bash
# Builds the transliteration program and runs it.
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cc -O2 -g -fopenmp "$here/runestone_transliterate.c" -o "$build/runestone_transliterate"
"$build/runestone_transliterate"
