#!/bin/sh
# ompi_headers.sh SOURCE DEST [BINDIR]: lays Open MPI's internal headers into DEST, for an installed Open MPI that came
# without them. SOURCE is a release of the same version, a folder or an archive. ompi_info (of BINDIR) says how the
# installed one was configured; the source is configured alike, in DEST.build, and nothing of it is built. Takes a few
# minutes.
#
# One generated header, opal_config.h, decides the layout of all that a component sees. Options that only choose
# components are left out: they cost time, and need packages of their own.
set -eu
die()
{
    echo "ompi_headers.sh: $*" >&2
    exit 1
}
[ $# -ge 2 ] || die "usage: ompi_headers.sh SOURCE DEST [BINDIR]"
mkdir -p "$(dirname "$2")"
dest=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
build=$dest.build
ompi_info=${3:+$3/}ompi_info
rm -rf "$build" "$dest"
mkdir -p "$build"
if [ -f "$1" ]; then
    mkdir "$build/source"
    tar -xf "$1" -C "$build/source" --strip-components=1 || die "$1 is no archive that tar reads"
    source=$build/source
else
    source=$(cd "$1" && pwd) || die "$1 is no folder"
fi
[ -f "$source/VERSION" ] || die "$1 is no source of Open MPI: it has no VERSION"
[ -x "$source/configure" ] || die "$1 has no configure: take a release, not a git clone, or run autogen.pl there"

installed=$("$ompi_info" --version 2>/dev/null | sed -n 's/^Open MPI v//p')
version=$(sed -n 's/^major=//p; s/^minor=//p; s/^release=//p' "$source/VERSION" | paste -sd. -)
[ "$(echo "$installed" | sed 's/[^0-9.].*//')" = "$version" ] ||
    die "$1 is Open MPI $version, and installed is ${installed:-none}: take the source of that release"

# The options of the installed one that change what components see, a word each: they are kept.
keep=
while IFS= read -r option; do
    dir=${option#*=}
    case $option in
    --enable-debug | --enable-mem-debug | --enable-mem-profile | --enable-memchecker | --enable-heterogeneous | \
        --enable-sparse-groups | --enable-ipv6 | --disable-ipv6 | --enable-mpi1-compatibility | --enable-c11-atomics | \
        --disable-c11-atomics | --enable-builtin-atomics | --disable-builtin-atomics | --enable-peruse | \
        --enable-timing* | --with-ft* | --without-ft* | --with-threads=* | --with-max-* | --with-mpi-param-check* | \
        --with-cuda)
        keep="$keep $option"
        ;;
    --with-cuda=no | --with-cuda-libdir=*) ;;
    --with-cuda=*)
        if [ -d "$dir" ]; then
            keep="$keep $option"
        elif [ "${version%%.*}" -lt 5 ]; then # later ones look the same with it and without
            die "Open MPI was built $option, which changes its layout, and that folder is gone: link it there"
        fi
        ;;
    --with-hwloc=* | --with-libevent=* | --with-pmix=* | --with-prrte=*)
        case $dir in
        internal | external | yes | no) keep="$keep $option" ;;
        *) [ ! -d "$dir" ] || keep="$keep $option" ;;
        esac
        ;;
    esac
done <<END
$("$ompi_info" --config --parsable | sed -n 's/^config:cli: *//p' | sed "s/^'//; s/'\$//; s/' '/\n/g")
END
compiler=$("$ompi_info" --config --parsable | sed -n 's/^compiler:c:absolute://p')
[ -x "$compiler" ] || compiler=gcc

# shellcheck disable=SC2086
(cd "$build" && "$source/configure" CC="$compiler" $keep --disable-mpi-fortran --disable-oshmem --disable-io-romio \
    --disable-dependency-tracking --without-verbs --without-ofi --without-libfabric --without-psm2 --with-ucx=no \
    --without-slurm --without-sge --without-tm --disable-sphinx --disable-man-pages) >"$build.log" 2>&1 ||
    die "Open MPI's configure failed, $build.log says why: $(grep -m1 'error:' "$build.log" || tail -n 1 "$build.log")"

# As --with-devel-headers would. mpi.h stays the installed one. Copies, no links: gcc looks next to a link's target.
for root in "$source" "$build"; do
    for project in opal ompi orte; do
        [ -d "$root/$project" ] || continue
        mkdir -p "$dest"
        (cd "$root" && find "$project" -name '*.h' ! -name mpi.h ! -name mpi-ext.h ! -path '*/romio*' \
            ! -path '*/libevent2022/libevent/*' ! -path '*/hwloc201/hwloc/*' ! -path '*/pmix3x/pmix/*' \
            ! -path '*/test/*' -print0 | tar -cf - --null -T -) | tar -xf - -C "$dest"
    done
done
# PROJECT/include is on the path of every file of Open MPI: its content goes to the top.
for project in opal ompi orte; do
    [ ! -d "$dest/$project/include" ] || cp -r "$dest/$project/include/." "$dest/"
done
[ -f "$dest/ompi/mca/coll/coll.h" ] && [ -f "$dest/opal_config.h" ] || die "$1 has not the headers of a release of Open MPI"
rm -rf "$build"
echo "Open MPI $version, configured with:${keep:- nothing of weight}"
