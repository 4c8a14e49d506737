#!/bin/sh
# The frameworks whose launchers the tests start, into .frameworks/, a Python of their own: users
# of Teho need none of them. What cannot be installed is said, and its tests skip and say so too.
# Where PyTorch would come with gigabytes of CUDA, `make test FRAMEWORKS=no` leaves all of it out.
set -eu

if [ "${FRAMEWORKS:-yes}" = no ]; then exit 0; fi

python=${1:-python3}
# `soak`: what only `make soak` needs.
list=requirements/${2:-frameworks}.txt
tried=.frameworks/tried${2:+-$2}
if [ -n "$(find "$tried" -newer "$list" 2>/dev/null)" ]; then exit 0; fi
echo "Installing frameworks for the tests into .frameworks: some minutes, once"
[ -x .frameworks/bin/python ] || "$python" -m venv .frameworks
pip() { .frameworks/bin/python -m pip --disable-pip-version-check -q "$@"; }
reason() { grep -im 1 error .frameworks/log || tail -n 1 .frameworks/log; }

grep -v '^#' "$list" | while read -r requirement; do # what can be had is had
    # In a build environment of its own, DeepSpeed would bring another PyTorch along.
    pip install --no-build-isolation "$requirement" >.frameworks/log 2>&1 </dev/null ||
        echo "$requirement could not be installed: $(reason)"
done
# Horovod is read, not run: its sources do not build with a PyTorch of today.
[ -n "${2:-}" ] || pip download --no-deps --no-build-isolation --no-binary :all: -d .frameworks/sources \
    horovod==0.28.1 >.frameworks/log 2>&1 ||
    echo "Horovod's sources could not be had: $(reason)"
touch "$tried"
