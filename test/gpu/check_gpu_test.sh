#!/bin/bash
# The parts of make check-gpu leave their files where there is no GPU too, and say what was left out.
set -u
cd "$HETCOLL_BUILDDIR" || exit 1
failures=0
# what STATUS NAME: a line.
what()
{
    if [ "$1" -eq 0 ]; then
        echo "ok    $2"
    else
        echo "FAIL  $2"
        failures=$((failures + 1))
    fi
}
check=$HETCOLL_SRCDIR/test/gpu/check_gpu.sh
output=$(bash "$check" nonsense 2>&1)
[ $? -eq 2 ] && [[ $output == *'there is no part nonsense, there are: probe '* ]]
what $? 'an unknown part is refused'

unset LD_LIBRARY_PATH # as on a GPU's machine: the emulated driver is taken if there is no other
output=$(bash "$check" conformance sanitizers 2>&1)
what $? 'conformance and sanitizers'
gpu=$(sed -nE 's/^-- .*\/conformance_(.*)\.txt$/\1/p' <<<"$output") # other GPUs may have left files too
grep -q '^# result      passed, ' "check-gpu/conformance_$gpu.txt" &&
    grep -q '^# gpu  ' "check-gpu/conformance_$gpu.txt"
what $? 'the file of conformance names the GPU'
case $gpu in
Emulated*)
    grep -q '^# result      left out' "check-gpu/sanitizers_$gpu.txt"
    what $? 'what needs a GPU is left out'
    [[ $output == *'sanitizers: left out: compute-sanitizer needs a GPU'* ]]
    what $? 'and that is said at the end'
    ;;
esac
for program in probe latency_probe; do
    probed=$(LD_LIBRARY_PATH=emulated_gpu/lib EMU_HOSTILE=0 test/gpu/$program 2>&1)
    [ $? -eq 0 ] && ! grep -E '^(not asked|ended by)' <<<"$probed"
    what $? "$program gets an answer to every question"
done
lacking='(a graph of one kernel|cuStreamBatchMemOp|process [01]: cuMemcpyBatchAsync).*: not in this driver'
untimed=$(sed -n '/^== cuStreamQuery/,/^== single/p' <<<"$probed" |
    grep -vE "^(==.*|$lacking|)\$|: ([0-9.]+ us, 99 of 100 [0-9.]+ us|yes)\$")
[ -z "$untimed" ] && [ "$(grep -c '^== ' <<<"$probed")" -eq 9 ]
what $? "latency_probe times all calls that the driver has: $untimed"
if [ $failures -gt 0 ]; then
    echo "$output"
fi
[ $failures -eq 0 ]
