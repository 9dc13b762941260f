#!/bin/bash
# carry.sh FOLDER: makes a folder with all that make check-gpu needs on a machine without Open MPI, compilers and
# sources: Debian's Open MPI with the libraries it needs, from the packages installed here, and this build, stripped.
# At most 48 MiB. make carry FOLDER=FOLDER builds and runs it, on Debian; by hand in a complete build folder. Copy
# FOLDER, and there:
#
#   FOLDER/run.sh [PART...]                  the parts of check_gpu.sh
#   FOLDER/run.sh first_minutes [STEP...]    what to ask of a GPU that is there for minutes only: first_minutes.sh
#   FOLDER/run.sh mpirun ARGUMENT...         any program
#
# PYTHON=FILE names a Python of the release that the machine has; then Horovod's extension for that Python's PyTorch goes
# along, see horovod_extension.sh: TORCH=FOLDER has that PyTorch, or else 530 MB of it are downloaded into the build folder.
#
# The machine needs bash, tar, gzip, a glibc as new as this one's, and its GPU's driver. run.sh unpacks next to itself.
set -eu
most_mib=48
packages='libopenmpi3 openmpi-bin openmpi-common libpmix2'
die()
{
    echo "carry.sh: $1" >&2
    exit 1
}
say() { echo "carry.sh: $1"; }

[ $# -eq 1 ] || die 'one argument: the folder to make'
[ ! -e "$1" ] || die "$1 exists: give the name of a new folder"
build=$(cd "${HETCOLL_BUILDDIR:-.}" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
[ -e "$build/component/mca_coll_hetcoll.so" ] || die "$build is no build folder with a component: run it in one"
# shellcheck disable=SC2086
dpkg-query -W $packages >/dev/null 2>&1 ||
    die "this takes Debian's packages $packages, which are not all installed"
mpi_library=$(ldd "$build/component/hetcoll_component.so" | awk '/libopen-pal/ { print $3 }')
# shellcheck disable=SC2086
dpkg -S "$(readlink -f "$mpi_library")" >/dev/null 2>&1 ||
    die "this build uses $mpi_library, which is no Debian package's: carry.sh takes Debian's Open MPI"
libraries=$(dirname "$(readlink -f "$mpi_library")")
mkdir -p "$1"
to=$(cd "$1" && pwd)

# The packages' files but what only people, compilers, other languages and adapters need: all ranks are on one machine.
# shellcheck disable=SC2086
dpkg -L $packages | sort -u | grep -vE '^/usr/(share/(doc|man|lintian)|include)/|\.(mod|la|a|h)$|/(lib)?mca_(mtl|spml|scoll|memheap|sshmem|atomic|[a-z]*_(ofi|openib|ucx|usnic))[_.]|/pmix_mca_pcompress_|/lib(oshmem|mpi_(java|cxx|mpifh|usempi)[^/]*)[.]so' |
    while read -r file; do [ -d "$file" ] || echo "$file"; done | tar -C / -cf - -T - 2>/dev/null | tar -C "$to" -xf -
install -D "$(readlink -f "$(command -v mpirun)")" "$to/usr/bin/mpirun" # a link of Debian's alternatives
mpi_kib=$(du -sk "$to" | cut -f 1)

# This build: programs of check-gpu (behind libtool's wrappers), the component, the emulated GPU to try it all with.
for program in emulated_gpu/conformance bench/cpu_path_bench bench/kernel_bench bench/gpu_ranks_bench hetcoll_bench hetcoll_info hetcoll_tune test/gpu/latency_probe test/gpu/probe test/gpu/which_gpu \
    test/gpu/kernels_gpu_test test/gpu/ranks_over_ipc_test test/gpu/ranks_in_one_process_test \
    test/mpi/churn test/mpi/device_allreduce test/mpi/foreign_kernel test/mpi/lifecycle \
    test/mpi/mixed_memory test/mpi/named_stream test/mpi/nonblocking test/mpi/other_memory test/mpi/own_collectives test/mpi/staged_collectives \
    test/mpi/stream_order test/mpi/streams bench/stream_bench; do
    file=$build/$program
    [ ! -x "$(dirname "$file")/.libs/$(basename "$file")" ] || file=$(dirname "$file")/.libs/$(basename "$file")
    if [ -x "$file" ]; then
        install -D --strip "$file" "$to/build/$program"
    else
        say "without $program, which is not built"
    fi
done
for library in component/mca_coll_hetcoll.so component/hetcoll_component.so component/hetcoll_aggregators.so emulated_gpu/lib/libcuda.so.1 \
    emulated_gpu/lib/libcudart.so.13 emulated_gpu/lib/libhetcoll_emulated_kernels.so examples/stream/libstream_calls.so; do
    install -D "$(readlink -f "$build/$library")" "$to/build/$library"
    strip --strip-unneeded "$to/build/$library"
done
mkdir -p "$to/source/test" "$to/source/emulated_gpu" "$to/source/examples/stream"
cp "$source/examples/stream/sum_cupy.py" "$to/source/examples/stream"
cp -r "$source/test/gpu" "$to/source/test"
install -D -t "$to/source/test/mpi" "$source/test/mpi/on_nodes.sh"
rm -f "$to"/source/test/gpu/*.cc "$to"/source/test/gpu/*.h "$to"/source/test/gpu/local.mk
cp "$source/emulated_gpu/conformance.expected" "$to/source/emulated_gpu"

# The libraries that all of it is linked with, except glibc, the C++ library and the driver, which the machine has.
mkdir -p "$to/lib"
find "$to" -type f \( -perm -100 -o -name '*.so*' \) |
    while read -r file; do
        LD_LIBRARY_PATH=$to$libraries ldd "$file" 2>/dev/null || true
    done | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
    grep -vE '^(libc|libm|libdl|librt|libpthread|ld-linux[^ ]*|libstdc\+\+|libgcc_s|libcuda|libcudart)\.so' |
    while read -r name path; do
        case $path in
        "$to"/*) ;;
        *) [ -e "$to/lib/$name" ] || install "$(readlink -f "$path")" "$to/lib/$name" ;;
        esac
    done

# Its libraries are those of the PyTorch that is there.
if [ -n "${PYTHON:-}" ]; then
    TORCH=${TORCH:-$build/horovod-torch} bash "$source/test/gpu/horovod_extension.sh" "$build/horovod-extension" ||
        die 'no Horovod, the reason is above'
    mkdir "$to/horovod"
    cp -r "$build/horovod-extension/a" "$build/horovod-extension/b" "$to/horovod"
else
    say 'without Horovod: PYTHON names no Python to build it for'
fi

glibc=$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)
components=$(dirname "$(dpkg -L libopenmpi3 | grep '/mca_coll_tuned\.so$')")
pmix=$(dirname "$(dpkg -L libpmix2 | grep -m 1 '/pmix/.*\.so$')")
cat >"$to/run.sh" <<END
#!/bin/bash
# run.sh [PART...]: the parts of check_gpu.sh with the Open MPI in this folder; run.sh first_minutes [STEP...]: the steps
# of first_minutes.sh; run.sh mpirun ARGUMENT...: that. Made by carry.sh from commit $(sed -n 's/.*"\(.*\)".*/\1/p' "$build/measure/commit.h").
here=\$(cd "\$(dirname "\$0")" && pwd)
if [ ! -d "\$here/build" ]; then
    tar -C "\$here" -xzf "\$here/files.tgz" || { rm -rf "\$here/build"; exit 1; }
fi
has=\$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)
if [ "\$(printf '%s\n' $glibc "\${has:-0}" | sort -V | head -n 1)" != $glibc ]; then
    echo "run.sh: this needs glibc $glibc or newer, the machine has \${has:-another C library}" >&2
    exit 1
fi
export OPAL_PREFIX=\$here/usr OPAL_LIBDIR=\$here$libraries OPAL_PKGLIBDIR=\$here$components
export OPAL_PKGDATADIR=\$here/usr/share/openmpi OPAL_SYSCONFDIR=\$here/etc/openmpi
export PMIX_INSTALL_PREFIX=\$here/usr PMIX_MCA_mca_base_component_path=\$here$pmix
export PMIX_MCA_pcompress_base_silence_warning=1
export OMPI_MCA_plm=isolated # no ssh: all ranks are on this machine
# The machine's own libraries come first: its Python has them in the same process.
rm -rf "\$here/lib.used" && mkdir "\$here/lib.used" || exit 1
there=\$(PATH=\$PATH:/sbin:/usr/sbin ldconfig -p | awk '{ print \$1 }')
for library in "\$here"/lib/*; do
    echo "\$there" | grep -qxF "\${library##*/}" || ln -s "\$library" "\$here/lib.used"
done
export LD_LIBRARY_PATH=\$here/lib.used:\$here$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export MPI4PY_LIBMPI=\$here$libraries/libmpi.so.40 # mpi4py would take the machine's own Open MPI
export OMPI_COMPONENTS=\$here$components MPIRUN=\$here/usr/bin/mpirun PATH=\$here/usr/bin:\$PATH
export HETCOLL_BUILDDIR=\$here/build HETCOLL_SRCDIR=\$here/source HETCOLL_HOROVOD=\$here/horovod
if [ "\${1:-}" = mpirun ]; then
    export OMPI_MCA_mca_base_component_path=\$here/build/component:\$OMPI_COMPONENTS
    exec "\$@"
fi
script=check_gpu
if [ "\${1:-}" = first_minutes ]; then
    script=first_minutes
    shift
fi
exec bash "\$here/source/test/gpu/\$script.sh" "\$@"
END
chmod +x "$to/run.sh"

say "Open MPI $(dpkg-query -W -f '${Version}' libopenmpi3) from Debian: $((mpi_kib / 1024)) MiB"
say "libraries: $(du -sk "$to/lib" | awk '{ print int($1 / 1024) }') MiB, $(find "$to/lib" -type f | wc -l) files"
say "this build: $(du -sk "$to/build" | awk '{ print int($1 / 1024) }') MiB"
folders=$(cd "$to" && ls -d -- */)
# shellcheck disable=SC2086
tar -C "$to" -czf "$to/files.tgz" $folders
# shellcheck disable=SC2086
(cd "$to" && rm -r $folders)
total_kib=$(du -sk "$to" | cut -f 1)
say "$to: $((total_kib / 1024)) MiB packed, for machines with glibc $glibc or newer"
[ $((total_kib / 1024)) -lt $most_mib ] ||
    die "that is more than $most_mib MiB: configure --with-cuda-arch=90, or what the GPU there is"
