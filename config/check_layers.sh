#!/bin/sh
# check_layers.sh [SOURCE_DIR]: which folder may include which. Dependencies point down only, and only
# the component knows Open MPI's own headers (docs/architecture.md).
set -u
cd "${1:-${HETCOLL_SRCDIR:-.}}" || exit 1
failures=0

# layer FOLDER ALLOWED...: the quoted includes of FOLDER's files name only FOLDER and the allowed ones.
layer()
{
    folder=$1
    shift
    if [ ! -d "$folder" ]; then
        return
    fi
    wrong=
    for used in $(find "$folder" -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' |
                  xargs -r sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' | sort -u); do
        case $used in
        */*) from=${used%/*} ;;
        *) from=$(case $used in hetcoll_config.h | hetcoll_commit.h) echo configured ;; *) echo "$folder" ;; esac) ;;
        esac
        case " $folder configured $* " in
        *" $from "*) ;;
        *) wrong="$wrong $used" ;;
        esac
    done
    verdict "$folder" "$*" "$wrong"
}

# verdict WHAT ALLOWED WRONG
verdict()
{
    if [ -z "$3" ]; then
        echo "ok    $1 -> ${2:-nothing}"
    else
        echo "FAIL  $1 -> ${2:-nothing}, but it includes:$3"
        failures=$((failures + 1))
    fi
}

layer base
layer include
layer schedule base
layer topology base
layer tuning base schedule topology
layer sim base schedule topology tuning
layer cuda_kernels base emulated_gpu include
layer device base cuda_kernels
layer pointer_cache base device
layer topology_probe base device topology
layer transport base device cuda_kernels topology
layer aggregator base cuda_kernels
layer engine base schedule topology tuning cuda_kernels device pointer_cache topology_probe transport aggregator
layer wsp base cuda_kernels device pointer_cache include
layer emulated_gpu

# The host build of the kernels for the emulated GPU is the one file that knows the emulated GPU.
wrong=$(grep -lE '^ *# *include *"emulated_gpu/' cuda_kernels/* 2>/dev/null | grep -v '^cuda_kernels/emulated_kernels' | tr '\n' ' ')
verdict "cuda_kernels, but for emulated_kernels.cc" "no emulated_gpu" "${wrong:+ $wrong}"

# Open MPI's types end in the component; programs and the public header know mpi.h only.
wrong=$(grep -rlE '^ *# *include *[<"](ompi|opal|orte|oshmem)[/_]' \
    base schedule topology tuning cuda_kernels device pointer_cache topology_probe transport aggregator engine \
    wsp emulated_gpu include bench test tools 2>/dev/null | tr '\n' ' ')
verdict "everything but ompi/mca/coll/hetcoll" "no internal header of Open MPI" "${wrong:+ $wrong}"
wrong=$(grep -rlE '^ *# *include *[<"]mpi(-ext)?\.h[>"]' \
    base schedule topology tuning cuda_kernels device pointer_cache topology_probe transport aggregator engine \
    emulated_gpu 2>/dev/null | tr '\n' ' ')
verdict "the core" "no mpi.h" "${wrong:+ $wrong}"
wrong=$(grep -rhoE '^ *# *include *"(ompi/mca/coll/hetcoll|[a-z_0-9]+)/[^"]*"' ompi/mca/coll/hetcoll 2>/dev/null |
    sed 's/.*"\(.*\)"/\1/' | sort -u | grep -E '^(schedule|topology|tuning|cuda_kernels|device|pointer_cache|topology_probe|transport|aggregator|emulated_gpu|bench|test)/' | tr '\n' ' ')
verdict "ompi/mca/coll/hetcoll" "engine base include, Open MPI" "${wrong:+ $wrong}"

[ "$failures" -eq 0 ] || echo "$failures of the layer checks failed"
[ "$failures" -eq 0 ]
