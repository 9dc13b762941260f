#!/bin/bash
# ompi_source.sh [ARCHIVE]: hetcoll for an Open MPI without internal headers, as Spack, EasyBuild and conda-forge install
# it: this machine's, with its headers hidden. configure --with-ompi-source takes them from Open MPI's source, in at most
# four minutes, and jobs reduce with them. Headers of that source configured otherwise (--enable-debug; in 4.1 with CUDA
# too) are refused by configure, and by each job where hetcoll was built with them all the same. ARCHIVE is the source of
# the installed release; Debian's comes from where this machine's apt gets its packages. As root, for mounts in a
# namespace of its own; 12 minutes on two cores. Not a part of make check.
#
# HETCOLL_OMPI_SOURCE=1 test/releases.sh SUITE runs this with another release of Debian.
#
#   HETCOLL_OMPI_LIBRARY=1  with 4.1 also the other way round: builds it with CUDA, where headers without are refused; 10
#                           minutes more
#   HETCOLL_RELEASES=DIR    what it makes is in DIR/ompi-source (/var/tmp/hetcoll-releases)
#   CUDA_HOME=DIR           the toolkit (/usr/local/cuda)
set -u
src=$(cd "$(dirname "$0")/.." && pwd)
folder=${HETCOLL_RELEASES:-/var/tmp/hetcoll-releases}/ompi-source
cuda=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}")
. "$src/test/system.sh"
need unshare mpicc ompi_info mpirun
if [ -z "${HETCOLL_NAMESPACE:-}" ]; then
    [ $# -eq 0 ] || set -- "$(readlink -f "$1")"
    HETCOLL_NAMESPACE=own exec unshare -m --propagation private "$0" "$@"
fi
. "$src/test/verdict.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NVCC_PREPEND_FLAGS=-allow-unsupported-compiler
release=$(ompi_info --version | sed -n 's/^Open MPI v//p')
system=$(ompi_info --path pkglibdir | sed 's/^[^:]*: *//')

# shellcheck disable=SC2016,SC2154 # formats of other programs; verdict.sh makes work
# get_source: Debian's, by lists of its own, as this machine's apt may have none of sources. Sets archive.
get_source()
{
    local lists=$folder/apt version
    version=$(dpkg-query -f '${source:Version}\n' -W 'libopenmpi[0-9]*' | head -n 1) || return 1
    archive=$(find "$folder" -maxdepth 1 -name "openmpi_$release*.orig.tar.*" | head -n 1)
    [ -z "$archive" ] || return 0
    mkdir -p "$lists/partial"
    apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | sort -u |
        sed 's/^\(.*\) \(.*\)$/deb-src \1 \2 main/' >"$folder/deb-src.list"
    set -- -o Dir::Etc::sourcelist="$folder/deb-src.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$lists" \
        -o Acquire::Check-Valid-Until=false
    (apt-get "$@" update && cd "$folder" && apt-get "$@" source --download-only "openmpi=$version") >"$work/out" 2>&1
    archive=$(find "$folder" -maxdepth 1 -name "openmpi_$release*.orig.tar.*" | head -n 1)
    [ -n "$archive" ]
}

# hide: what a program includes is left, as without --with-devel-headers.
hide()
{
    local dir public=$work/public
    for dir in $(mpicc --showme:incdirs) $(mpicc --showme:incdirs | sed 's/$/\/openmpi/'); do
        [ -f "$dir/ompi/mca/coll/coll.h" ] || continue
        rm -rf "$public" && cp -r "$dir" "$public" && rm -rf "$public"/{ompi,opal,orte,oshmem}{,_*.h} || return 1
        mount -t tmpfs none "$dir" && cp -r "$public/." "$dir" && [ ! -f "$dir/opal_config.h" ] || return 1
    done
}

# set_up NAME ARGUMENT...: configures hetcoll in a folder of its own.
set_up()
{
    mkdir -p "$folder/$1" && cd "$folder/$1" || return 1
    shift
    "$src/configure" --with-cuda="$cuda" --with-cuda-arch=80 --disable-tune "$@" >"$work/out" 2>&1
}

# job PROGRAM ARGUMENT...: two ranks with the component of $folder/build. Variable before it: options of mpirun. From 5.0
# on that path is PMIx's as well, if it has none of its own.
job()
{
    local lib=$folder/build/emulated_gpu/lib program=$1
    shift
    if [ "${release%%.*}" -ge 5 ]; then
        PMIX_MCA_mca_base_component_path=$(pkg-config --variable=libdir pmix)/pmix
        export PMIX_MCA_mca_base_component_path
    fi
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} EMU_KERNELS=$lib/libhetcoll_emulated_kernels.so EMU_NODE=source$$ \
        OMPI_MCA_mca_base_component_path=$folder/build/component:$system timeout -k 5 120 mpirun --oversubscribe \
        --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 ${options:-} -n 2 "$folder/build/$program" "$@" >"$work/out" 2>"$work/err" </dev/null
}

# make_headers NAME OPTION: those of the source when it is configured with OPTION too, in $folder/NAME: ompi_info says
# that the installed one was.
make_headers()
{
    rm -rf "${folder:?}/bin" && mkdir -p "$folder/bin"
    printf '#!/bin/sh\n"%s" "$@" | sed "s|^config:cli: *|&'"'%s'"' |"\n' "$(command -v ompi_info)" "$2" >"$folder/bin/ompi_info"
    chmod +x "$folder/bin/ompi_info"
    sh "$src/config/ompi_headers.sh" "$archive" "$folder/$1" "$folder/bin" >"$work/out" 2>&1 && grep -q -- "$2" "$work/out"
}

# Five jobs with the component of $folder/build.
jobs_go_without()
{
    local runs
    for runs in 1 2 3 4 5; do
        job hetcoll_bench --memory host --sizes 8 --iterations 1 && grep -q 'every element right' "$work/out" &&
            [ "$(grep -c 'hetcoll was built' "$work/err")" = 1 ] &&
            grep -q "hetcoll was built with other headers than this Open MPI's: .*: hetcoll steps aside, rebuild it" "$work/err"
        verdict $? "job $runs runs without it, and one line says so: $(grep -o -m 1 "[a-z_]*_t has .* in the library" "$work/err")"
    done
}

# refused NAME OPTION
refused()
{
    local start=$SECONDS
    make_headers "$1" "$2"
    verdict $? "$2: headers of the source, configured so, after $((SECONDS - start)) s"
    ! set_up "build-$1" --with-ompi-headers="$folder/$1" && grep -q 'configure: error: .* are not of the libraries' "$work/out"
    verdict $? "configure refuses them: $(grep -o '[a-z_]*_t has [0-9]* bytes in the headers and [0-9]* in the library' "$work/out")"
    cd "$folder/build" && rm -rf ompi-headers && cp -r "$folder/$1" ompi-headers && find ompi -name '*.*o' -delete &&
        make -s -j"$(nproc)" component/mca_coll_hetcoll.so >"$work/out" 2>&1
    verdict $? 'the component compiles with them'
    jobs_go_without
}

# The source itself with CUDA, and hetcoll for it by the headers of the installed one, which has none.
refused_by_library()
{
    local start=$SECONDS library=$folder/library headers=$folder/build/ompi-headers
    rm -rf "$library" "$library.source" && mkdir -p "$library.source" &&
        tar -xf "$archive" -C "$library.source" --strip-components=1 && cd "$library.source" &&
        { ./configure --prefix="$library" --with-cuda="$cuda" --with-hwloc=external --with-libevent=external \
            --with-pmix=internal --disable-mpi-fortran --disable-oshmem --disable-io-romio --without-ucx --without-verbs \
            --without-ofi --without-psm2 && make -s -j"$(nproc)" install; } >"$work/out" 2>&1
    verdict $? "Open MPI of the source, with CUDA, after $((SECONDS - start)) s"
    local -x PATH=$library/bin:$PATH LD_LIBRARY_PATH=$library/lib
    local system=$library/lib/openmpi
    ! set_up build-library --with-ompi="$library" --with-ompi-headers="$headers" &&
        grep -q 'configure: error: .* are not of the libraries' "$work/out"
    verdict $? "configure refuses headers without: $(grep -o '[a-z_]*_t has [0-9]* bytes in the headers and [0-9]* in the library' "$work/out")"
    jobs_go_without
}

mkdir -p "$folder"
archive=${1:-}
echo "# date          $(date -u '+%F %T UTC')"
echo "# machine       $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
echo "# mpi           Open MPI $release"
echo "# commit        ${HETCOLL_COMMIT:-$(git -C "$src" describe --always --dirty --abbrev=12)}"
echo "# made by       test/ompi_source.sh"
[ -n "$archive" ] || get_source
verdict $? "the source of Open MPI $release: ${archive##*/}"
[ -f "$archive" ] || exit 1
[ -x "$src/configure" ] || (cd "$src" && ./autogen.sh) >"$work/out" 2>&1
rm -rf "$folder"/build*
hide
verdict $? 'no internal header is installed'
! set_up build-none && grep -q 'configure: error: ompi/mca/coll/coll.h not found next to .* --with-ompi-source=DIR' "$work/out"
verdict $? 'configure says what is missing'

start=$SECONDS
set_up build --with-ompi-source="$archive"
status=$? took=$((SECONDS - start))
verdict $status "configure --with-ompi-source, in $took s"
[ $status = 0 ] || exit 1
[ $took -le 240 ]
verdict $? 'at most four minutes'
start=$SECONDS
(make -s measure/commit.h && make -s -j"$(nproc)" component/mca_coll_hetcoll.so hetcoll_bench test/mpi/device_allreduce \
    test/mpi/own_collectives emulated_gpu/lib/libcuda.so.1 emulated_gpu/lib/libnvidia-ml.so.1 \
    emulated_gpu/lib/libhetcoll_emulated_kernels.so) >"$work/out" 2>&1
verdict $? "make, in $((SECONDS - start)) s"
for program in device_allreduce own_collectives; do
    options='--mca coll hetcoll' job test/mpi/$program && grep -q "^ok $program" "$work/out" && ! grep -q 'hetcoll was built' "$work/err"
    verdict $? "$program, 2 ranks"
done
start=$SECONDS
set_up build-headers --with-ompi-headers="$folder/build/ompi-headers"
verdict $? "configure --with-ompi-headers with these, in $((SECONDS - start)) s"
[ -z "${HETCOLL_OMPI_LIBRARY:-}" ] || [ "${release%%.*}" -ge 5 ] || refused_by_library
refused debug --enable-debug
[ "${release%%.*}" -ge 5 ] || refused cuda "--with-cuda=$cuda" # from 5.0 on the layout is the same
sum_up
