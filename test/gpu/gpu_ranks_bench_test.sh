#!/bin/sh
# The benchmark of ranks that share a GPU runs to its end on the emulated one, and says what it does
# not measure. A fake NCCL stands for the real one.
set -u
cd "$HETCOLL_BUILDDIR" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fake=test/gpu/.libs/libfake_nccl.so
failures=0

# says STATUS TEXT ARGUMENT...: the benchmark ends with the status, a line of what it prints has TEXT.
says()
{
    status=$1
    text=$2
    shift 2
    bench/gpu_ranks_bench "$@" >"$work/out" 2>&1
    got=$?
    if [ "$got" -eq "$status" ] && grep -q -- "$text" "$work/out"; then
        echo "ok    gpu_ranks_bench $*"
    else
        echo "FAIL  gpu_ranks_bench $*: status $got, not $status with '$text':"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}
# has TEXT: so does another line of the last run.
has()
{
    if grep -q -- "$1" "$work/out"; then
        echo "ok    ... $1"
    else
        echo "FAIL  ... nothing like $1"
        failures=$((failures + 1))
    fi
}

says 77 '^# result      none: this is the emulated GPU'
says 2 '^gpu_ranks_bench: --faster: unknown' --faster 1
says 2 'ranks are possible' --ranks 1

says 0 '^    2          8 auto:' --emulated --ranks 2,3 --bytes 40000 --seconds 0 --nccl "$fake"
for line in 'leader .*' 'two_shot' 'one_shot' 'ring' 'rabenseifner' 'recursive_doubling' 'hierarchical' \
    'staged' 'nccl'; do
    has "^    3      40000 $line  *[0-9.]*  *[0-9.]*  *[0-9.]*"
done
# The first measurement is repeated last.
ends=$(sed '/^medians/q' "$work/out" |
    awk '$1 == 3 && $2 == 40000 && $3 != "nccl" { first = first ? first : $3; last = $3 } END { print first, last }')
case $ends in
"auto:"*" auto:"*) echo "ok    ... auto first and last" ;;
*)
    echo "FAIL  ... not auto first and last: $ends"
    failures=$((failures + 1))
    ;;
esac
has '^    3         32 host '
has '^    3         32 copy_in '
has '^    2      32768 [a-z_:]*  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$' # the comparison
has '^# target      not judged'

quick='--emulated --ranks 2 --bytes 64 --seconds 0 --ways leader'
says 0 'nccl .*not measured: no NCCL: ' $quick --nccl "$work/none.so"
FAKE_NCCL_VERSION=22907
export FAKE_NCCL_VERSION
says 0 'not measured: NCCL 2.29.7 refuses ranks that share a GPU' $quick --nccl "$fake"
unset FAKE_NCCL_VERSION
FAKE_NCCL_DIES=1
export FAKE_NCCL_DIES
says 0 'not measured further: rank 1 of 2 ended with exit status 9' $quick --nccl "$fake"
has '^    2         64 leader '

[ $failures -eq 0 ]
