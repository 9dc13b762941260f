#!/bin/bash
# check_gpu.sh [PART...]: what only a GPU can tell, in parts of at most eight minutes each; without arguments all of
# them. make check-gpu builds what they need and runs it; check_gpu.sh --list names them. A part leaves a file
# check-gpu/PART_GPU.txt in the build folder that names the GPU, driver, machine and commit, and ends with
#
#   # result      passed, failed (why), or left out: why
#
# On a machine without a GPU the parts run on the emulated one, hostile. Times measured there are not judged.
#
#   HETCOLL_BUILDDIR  the build folder, if it is not this one
#   HETCOLL_CUBLAS    the cuBLAS for matrix products, if it is neither python3's nor the loader's nor in CUDA_HOME
#   HETCOLL_NCCL      the NCCL to compare with, if it is neither python3's nor the loader's
#   MPIRUN            mpirun, if it is not the configured one
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "${HETCOLL_BUILDDIR:-.}" || exit 1
build=$PWD
parts='probe latency conformance kernels sanitizers ipc one_process cpu_path kernel_bench blocks ranks_bench component streams arrays ncu'
part_seconds=480
# shellcheck source=test/gpu/parts.sh
. "$here/parts.sh"
export HETCOLL_SRCDIR=${HETCOLL_SRCDIR:-$(dirname "$(dirname "$here")")} HETCOLL_BUILDDIR=$build

test_program()
{
    needs "test/gpu/$1" 'GoogleTest was missing'
    "test/gpu/$1" --gtest_brief=1
}
# tool NAME: the path of one of the toolkit's.
tool() { PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin command -v "$1"; }
target() { echo "# target      $*"; }

probe()
{
    needs test/gpu/probe
    test/gpu/probe
}

# Floors for the times of calls: what the driver alone takes on this machine.
latency()
{
    needs test/gpu/latency_probe
    test/gpu/latency_probe
}

# A difference is shown and is no failure: it is what the emulated driver has to learn.
conformance()
{
    needs emulated_gpu/conformance
    emulated_gpu/conformance --timings | tee check-gpu/conformance.answers # what it says before it fails too
    [ "${PIPESTATUS[0]}" -eq 0 ] || return 1
    if diff "$HETCOLL_SRCDIR/emulated_gpu/conformance.expected" \
        <(grep -v '^#' check-gpu/conformance.answers) >check-gpu/conformance.diff; then
        echo 'conformance: this driver answers as the emulated one'
    else
        echo "conformance: the emulated GPU's answers (<) and this driver's (>)"
        cat check-gpu/conformance.diff
    fi
    rm -f check-gpu/conformance.*
}

kernels() { test_program kernels_gpu_test; }
ipc() { test_program ranks_over_ipc_test; }
one_process() { test_program ranks_in_one_process_test; }

sanitizers()
{
    local sanitizer failed=0 name status
    needs test/gpu/kernels_gpu_test 'GoogleTest was missing'
    [ "$emulated" = 0 ] || omit 'compute-sanitizer needs a GPU; make check-asan does this on the emulated one'
    sanitizer=$(tool compute-sanitizer) || omit 'there is no compute-sanitizer on PATH or in CUDA_HOME'
    for name in memcheck racecheck synccheck; do
        timeout -k 5 150 "$sanitizer" --tool $name --error-exitcode 9 test/gpu/kernels_gpu_test --gtest_brief=1
        status=$?
        case $status in
        0) target "$name clean: met" ;;
        124 | 137) target "$name clean: not judged, no end within 150 s" ;;
        *) target "$name clean: missed, exit status $status" ;;
        esac
        [ $status -eq 0 ] || failed=1
    done
    return $failed
}

# Small vectors by the processor: what it takes, whether both see each other's writes, then calls with and without.
cpu_path()
{
    needs bench/cpu_path_bench
    [ "$emulated" = 0 ] || export EMU_GDR=1
    bench/cpu_path_bench || return
    bash "$here/cpu_path.sh"
}

kernel_bench()
{
    needs bench/kernel_bench 'CLI11 was missing'
    bench/kernel_bench
}

# How many blocks fill a link, and what fewer leave to matrix products.
blocks()
{
    local cublas=${HETCOLL_CUBLAS:-}
    needs bench/kernel_bench 'CLI11 was missing'
    if [ "$emulated" = 0 ] && [ -z "$cublas" ]; then
        cublas=$(python3 -c 'import glob, nvidia
found = [f for p in nvidia.__path__ for f in glob.glob(p + "/*/lib/libcublas.so.1[23]")]
print(max(found, key=lambda f: f[-2:]))' 2>/dev/null)
    fi
    bench/kernel_bench --blocks ${cublas:+--cublas "$cublas"}
}

ranks_bench()
{
    local nccl=${HETCOLL_NCCL:-}
    needs bench/gpu_ranks_bench
    if [ "$emulated" = 1 ]; then
        bench/gpu_ranks_bench --emulated --seconds 0.02 --bytes 256K --ways auto,leader,host,staged
        return
    fi
    [ -n "$nccl" ] || nccl=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")' 2>/dev/null)
    bench/gpu_ranks_bench --ways auto,leader,host,copy_in,staged ${nccl:+--nccl "$nccl"}
}

component() { bash "$here/component.sh"; }
streams() { emulated=$emulated bash "$here/streams.sh"; }
arrays() { bash "$here/arrays.sh"; }

# The kernel of many inputs, whose rate against the copy kernel_bench tells: a launch of 8 inputs and one result, and of
# 2 and 2, of 256 MiB each. A case of kernel_bench is 233 launches; each has three sizes.
ncu()
{
    local profiler launch
    needs bench/kernel_bench 'CLI11 was missing'
    [ "$emulated" = 0 ] || omit 'ncu needs a GPU'
    profiler=$(tool ncu) || omit 'there is no ncu on PATH or in CUDA_HOME'
    for launch in 505 1204; do
        "$profiler" --clock-control none --kernel-name hetcoll_reduce_many_sum_float32 --launch-skip $launch \
            --launch-count 1 --kill yes --section SpeedOfLight --section MemoryWorkloadAnalysis --section Occupancy \
            --section WarpStateStats bench/kernel_bench || return
    done
}

emulated=${HETCOLL_CHECK_GPU_EMULATED:-0}
case ${1:-} in
--list)
    echo "$parts"
    exit
    ;;
--part)
    "$2"
    exit
    ;;
esac
for part; do
    case " $parts " in
    *" $part "*) ;;
    *)
        echo "check_gpu.sh: there is no part $part, there are: $parts" >&2
        exit 2
        ;;
    esac
done
find_gpu || exit 1
mkdir -p check-gpu
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $parts
for part; do
    echo "== $part"
    file=check-gpu/${part}_$gpu.txt
    run_part "$part" $part_seconds "$file" bash "$here/check_gpu.sh" --part "$part"
    echo "-- $build/$file"
done
echo
[ "$emulated" = 0 ] || echo 'There is no GPU here: this was the emulated one.'
failed=0
for part; do
    sum_up_part "$part" "check-gpu/${part}_$gpu.txt" || failed=1
done
exit $failed
