#!/bin/sh
# Makes configure from configure.ac. Needed after a git clone, not in a release.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf/autoconf aclocal/automake libtoolize/libtool; do
    if ! command -v "${tool%/*}" >/dev/null; then
        echo "autogen.sh: ${tool%/*} not found: install the Debian package ${tool#*/}" >&2
        exit 1
    fi
done
mkdir -p config/autotools
exec autoreconf --install --force --warnings=all "$@"
