#!/bin/sh
# check_gpu.sh PROGRAM...: what only a real GPU can tell (make check-gpu). Its driver's answers beside
# those of the emulated GPU, the tests that can use it, and how fast the kernels are. A difference in
# an answer is shown and is no failure; a machine without a GPU is one.
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

failures=0
for program; do
    echo "== $program"
    case $program in
    */conformance) compare_answers "$program" ;;
    bench/*) "$TIMEOUT" -k 10 600 "./$program" || failures=$((failures + 1)) ;;
    *) "$TIMEOUT" -k 10 300 "./$program" --gtest_brief=1 || failures=$((failures + 1)) ;;
    esac
done
case " $* " in *" test/gpu/"*) ;; *) echo "without the tests in test/gpu: GoogleTest is not installed" ;; esac
case " $* " in *" bench/"*) ;; *) echo "without kernel_bench: Google Benchmark is not installed" ;; esac
[ $failures -eq 0 ] || echo "check-gpu: $failures of $# programs failed" >&2
[ $failures -eq 0 ]
