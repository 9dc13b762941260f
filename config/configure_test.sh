#!/bin/bash
# configure ends with one clear line where hetcoll cannot be loaded.
set -u
source=${HETCOLL_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}
[ -x "$source/configure" ] || exit 77
build=${HETCOLL_BUILDDIR:-$PWD}
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
[ -n "$(configured OMPI_INFO)" ] || exit 77 # configured without Open MPI
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# An Open MPI whose ompi_info says of itself what $1 does.
mkdir "$work/bin" "$work/build"
for program in MPICC MPIRUN; do
    path=$(configured $program)
    ln -s "$path" "$work/bin/$(basename "$path")"
done
cat >"$work/bin/ompi_info" <<SCRIPT
#!/bin/sh
"$(configured OMPI_INFO)" "\$@" | sed 's/^option:dlopen:.*/option:dlopen:no/'
SCRIPT
chmod +x "$work/bin/ompi_info"
cd "$work/build" || exit 1
# refused WHAT PATTERN ARGUMENT...: configure with these arguments ends with an error of this pattern.
refused()
{
    local what=$1 pattern=$2
    shift 2
    if env -u OMPI_INFO -u MPICC -u MPIRUN "$source/configure" --without-cuda "$@" >"$work/out" 2>&1; then
        echo "FAIL  configure takes $what"
        exit 1
    fi
    if ! grep -q "configure: error: $pattern" "$work/out"; then
        echo "FAIL  configure does not say why it does not take $what:"
        tail -n 5 "$work/out"
        exit 1
    fi
    echo "ok    configure ends with $what"
}
refused 'an Open MPI that loads no components' 'the Open MPI of .* was configured with --disable-dlopen' --with-ompi="$work"

# Headers of another configuration, next to the right ones that are installed.
for word in $(configured OMPI_CPPFLAGS); do
    [ ! -f "$word/ompi/mca/coll/coll.h" ] || cp -r "$word" "$work/headers"
done
sed -i 's/^\(#define OPAL_ENABLE_DEBUG\) 0$/\1 1/; t; s/^\(#define OPAL_ENABLE_DEBUG\) 1$/\1 0/' "$work/headers/opal_config.h"
refused 'headers that are not of the libraries' \
    'Open MPI.s internal headers in .*/headers are not of the libraries .*: [a-z_]*_t has [0-9]* bytes in the headers and [0-9]* in the library' \
    --with-ompi="$(dirname "$(dirname "$(configured MPICC)")")" --with-ompi-headers="$work/headers"
