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
if env -u OMPI_INFO -u MPICC -u MPIRUN "$source/configure" --with-ompi="$work" --without-cuda >"$work/out" 2>&1; then
    echo "FAIL  configure takes an Open MPI that loads no components"
    exit 1
fi
if ! grep -q 'configure: error: the Open MPI of .* was configured with --disable-dlopen' "$work/out"; then
    echo "FAIL  configure does not say why:"
    tail -n 5 "$work/out"
    exit 1
fi
echo "ok    configure ends where Open MPI loads no components"
