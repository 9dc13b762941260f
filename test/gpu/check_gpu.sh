#!/bin/sh
# check_gpu.sh PROGRAM...: what only a real GPU can tell (make check-gpu). Its driver's answers beside
# those of the emulated GPU, the tests that can use it, how fast the kernels and ranks that share
# it are. A difference in an answer is shown and is no failure; a machine without a GPU is one.
# HETCOLL_NCCL names the NCCL to compare with, if it is not the loader's libnccl.so.2.
set -u
if [ $# -eq 0 ]; then
    echo "check-gpu: hetcoll is configured --without-cuda, nothing here uses a GPU" >&2
    exit 1
fi

# Shows what the driver answers otherwise. Leaves the answers in conformance.gpu.
compare_answers()
{
    "$TIMEOUT" -k 10 300 "$1" --gpu --timings >conformance.gpu
    status=$?
    if [ $status -eq 77 ]; then
        echo "check-gpu: needs a GPU and its driver; the line above says what was found" >&2
        exit 1
    fi
    grep '^#' conformance.gpu
    grep -v '^#' conformance.gpu >conformance.answers
    if diff "$HETCOLL_SRCDIR/emulated_gpu/conformance.expected" conformance.answers >conformance.diff; then
        echo "conformance: the GPU answers as the emulated one"
    else
        echo "conformance: the emulated GPU's answers (<) and this GPU's (>)"
        cat conformance.diff
    fi
    if [ $status -ne 0 ]; then
        echo "conformance: ended early with exit status $status" >&2
        failures=$((failures + 1))
    fi
}

# keep_results PROGRAM NAME [ARGUMENT...]: shows a benchmark's results, and keeps them in a file that
# names the GPU.
keep_results()
{
    program=$1 name=$2
    shift 2
    mkdir -p bench/results
    { "$TIMEOUT" -k 10 600 "./$program" "$@"; echo $? >check_gpu.status; } | tee check_gpu.results
    if [ "$(cat check_gpu.status)" -ne 0 ]; then
        failures=$((failures + 1))
    fi
    device=$(sed -n 's/^# gpu  *//p' check_gpu.results | head -n 1 | tr -cs 'A-Za-z0-9.\n-' _)
    kept=bench/results/${name}_${device:-unknown}.txt
    mv -f check_gpu.results "$kept" && results="$results $kept"
    rm -f check_gpu.status
}

failures=0
results=
for program; do
    echo "== $program"
    case $program in
    */conformance) compare_answers "$program" ;;
    */kernel_bench) keep_results "$program" kernels ;;
    */gpu_ranks_bench) keep_results "$program" gpu_ranks ${HETCOLL_NCCL:+--nccl "$HETCOLL_NCCL"} ;;
    *) "$TIMEOUT" -k 10 300 "./$program" --gtest_brief=1 || failures=$((failures + 1)) ;;
    esac
done
case " $* " in
*" test/gpu/"*) ;;
*" emulated_gpu/conformance "*) echo "without the tests in test/gpu: GoogleTest is not installed" ;;
esac
for kept in $results; do
    echo "results: $PWD/$kept (to keep them: bench/results of the sources)"
done
[ $failures -eq 0 ] || echo "check-gpu: $failures of $# programs failed" >&2
[ $failures -eq 0 ]
