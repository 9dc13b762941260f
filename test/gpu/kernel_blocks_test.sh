#!/bin/sh
# kernel_bench --blocks runs to its end on the emulated GPU, says that it judges nothing there, and gives no figure if
# a result is wrong or a call fails. A fake cuBLAS stands for the real one.
set -u
cd "$HETCOLL_BUILDDIR" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fake=test/gpu/.libs/libfake_cublas.so
failures=0

what()
{
    if [ "$1" -eq 0 ]; then
        echo "ok    $2"
    else
        echo "FAIL  $2"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}
# says STATUS TEXT ARGUMENT...: the benchmark ends with the status, a line of what it prints has TEXT.
says()
{
    status=$1
    text=$2
    shift 2
    timeout 100 bench/kernel_bench "$@" >"$work/out" 2>&1
    got=$?
    [ "$got" -eq "$status" ] && grep -q -- "$text" "$work/out"
    what $? "kernel_bench $*: status $got, '$text'"
}
# has COUNT NAME [COLUMNS]: COUNT lines of the last run begin with NAME, and have these numbers.
has()
{
    [ "$(grep -cE -- "^$2 *${3:-}" "$work/out")" -eq "$1" ]
    what $? "... $1 times '$2'"
}

says 2 'blocks' --cublas "$fake"
says 0 '^# matmul      left out: cuBLAS cannot run on the emulated GPU' --blocks
says 0 '^# target      not judged' --blocks --cublas "$fake"
three='\|( +[0-9][0-9.]*){3}'
for blocks in 1 2 4 8 16 32 64 132 264 full; do
    has 2 "$blocks" "$three $three $three\$"
done
has 2 '95 % with'
for bytes_blocks in '     8      1' '  1024      1' ' 65536      1' ' 65536      8' '262144     32'; do
    has 2 "$bytes_blocks" "$three $three $three\$"
done
for blocks in full 32 8; do
    has 1 "host memory *$blocks" "$three $three\$"
    has 1 "own memory *$blocks" "$three $three\$"
done

says 0 '^# matmul      left out: no cuBLAS: .*nowhere.so' --blocks --cublas "$work/nowhere.so"
export FAKE_CUBLAS_WRONG=1
says 1 'a product of 64 x 64 floats by .* is wrong' --blocks --cublas "$fake"
export EMU_FAIL=cuLaunchKernel:20:719
says 1 'cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED' --blocks
[ $failures -eq 0 ]
