#!/bin/sh
# ompi_tree.sh SOURCE_DIR OMPI_SRC VERSION: lays hetcoll into an Open MPI source tree, as its component
# ompi/mca/coll/hetcoll, ready for autogen.pl.
set -eu
src=$1
ompi=$2
version=$3
[ -n "$ompi" ] || {
    echo "make ompi-tree: say where Open MPI's source is: make ompi-tree OMPI_SRC=DIR" >&2
    exit 1
}
[ -f "$ompi/ompi/mca/coll/coll.h" ] || {
    echo "make ompi-tree: $ompi is not an Open MPI source tree: it has no ompi/mca/coll/coll.h" >&2
    exit 1
}
[ -f "$ompi/autogen.pl" ] || {
    echo "make ompi-tree: $ompi has no autogen.pl, which finds new components" >&2
    exit 1
}
glue=$src/ompi/mca/coll/hetcoll
to=$ompi/ompi/mca/coll/hetcoll
rm -rf "$to"
mkdir -p "$to/config"

cp "$glue"/*.c "$glue"/*.h "$glue"/configure.m4 "$glue"/Makefile.am \
    "$glue"/owner.txt "$src"/LICENSE "$to"
sed 's,ompi/mca/coll/hetcoll/,,g' "$glue/local.mk" >"$to/component.mk"
sed "s/@HETCOLL_WITH_CUDA@/1/; \
    s/@HETCOLL_WITH_NVTX@/@coll_hetcoll_WITH_NVTX@/; \
    s/@HETCOLL_WITH_OPENSSL@/@coll_hetcoll_WITH_OPENSSL@/; \
    s/@HETCOLL_WITH_UCX@/@coll_hetcoll_WITH_UCX@/" "$src/hetcoll_config.h.in" >"$to/hetcoll_config.h.in"
cp "$src/config/cuda_arch_flags.sh" "$src/config/aggregators.map" "$src/config/component.map" "$to/config"
for folder in base schedule topology machine plan tuning price choice device pointer_cache cuda_kernels topology_probe transport aggregator engine include \
    engine/types engine/meeting engine/process engine/communicator engine/call; do
    mkdir -p "$to/$folder"
    # Not what a build in the source tree left there.
    find "$src/$folder" -maxdepth 1 -regex '.*\.\(h\|c\|cc\|cu\|cuh\|S\|mk\)' -exec cp {} "$to/$folder" \;
done
minor=${version#*.}
sed "s/@PACKAGE_VERSION@/$version/; s/@HETCOLL_VERSION_MAJOR@/${version%%.*}/; \
    s/@HETCOLL_VERSION_MINOR@/${minor%.*}/; s/@HETCOLL_VERSION_PATCH@/${version##*.}/" \
    "$src/include/hetcoll_version.h.in" >"$to/include/hetcoll_version.h"
echo "hetcoll is in $to. Next, there: ./autogen.pl --force && ./configure ... && make (docs/install.md)"
