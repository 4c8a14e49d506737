#!/bin/sh
# Debian packages that tests use, installed where that is possible; tests that miss one
# skip and say so.
set -eu
if command -v chromium >/dev/null || command -v google-chrome >/dev/null; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "No Chromium, and no root on Debian to install it: the tests in a browser are skipped."
    exit 0
fi
echo "Installing Chromium for the tests in a browser."
{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } \
    >/dev/null 2>&1 || echo "Chromium could not be installed: the tests in a browser are skipped."
