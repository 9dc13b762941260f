#!/bin/sh
# Makes configure from configure.ac. Needed after a git clone, not in a release.
set -eu
cd "$(dirname "$0")"
if ! command -v autoreconf >/dev/null; then
    echo "autogen.sh: autoreconf not found: install the Debian packages autoconf automake libtool" >&2
    exit 1
fi
if ! command -v libtoolize >/dev/null; then
    echo "autogen.sh: libtoolize not found: install the Debian package libtool" >&2
    exit 1
fi
mkdir -p config/autotools
exec autoreconf --install --force --warnings=all "$@"
