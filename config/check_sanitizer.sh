#!/bin/sh
# check_sanitizer.sh DIR LIST "TEST..." ["GOAL..."]: from a configured build folder, builds once more in DIR with
# -fsanitize=LIST, configured alike but for the kernels, which are for one architecture, runs the tests, and reads
# what the sanitizers wrote. With GOALs only these are built, without optimisation, which takes half the time.
set -eu
dir=$1
list=$2
tests=$3
goals=${4:-}
optimise=${4:+-O0}
eval "set -- $(./config.status --config)"
srcdir=$(sed -n 's/^abs_srcdir = //p' Makefile)
jobs=$(nproc 2>/dev/null || echo 1)

mkdir -p "$dir/sanitizer-logs"
cd "$dir"
rm -f sanitizer-logs/*
if [ ! -f Makefile ]; then
    "$srcdir/configure" -q "$@" CFLAGS="${optimise:--O1} -g -Wno-tsan" CXXFLAGS="${optimise:--O1} -g" --enable-sanitizer="$list" \
        --with-cuda-arch=80
fi
# shellcheck disable=SC2086
make -s -j"$jobs" $goals

# Leaks do not change the exit status: Open MPI leaks too, so they are told apart below.
logs=$PWD/sanitizer-logs
export ASAN_OPTIONS="log_path=$logs/asan:detect_leaks=1"
export LSAN_OPTIONS="exitcode=0"
export UBSAN_OPTIONS="log_path=$logs/ubsan:print_stacktrace=1"
# A thread's stack, and the thread-local data of opened libraries with it, passes to a later thread
# inside of glibc, where ThreadSanitizer does not see the order.
echo 'race:_dl_deallocate_tls' >tsan-suppressions
export TSAN_OPTIONS="log_path=$logs/tsan:halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tsan-suppressions"
status=0
make -s -j"$jobs" "$([ -n "$goals" ] && echo check-TESTS || echo check)" TESTS="$tests" || status=$?

for log in "$logs"/*; do
    [ -f "$log" ] || continue
    if grep -qE 'ERROR: (AddressSanitizer|UndefinedBehaviorSanitizer)|runtime error|WARNING: ThreadSanitizer' "$log"; then
        cat "$log"
        status=1
    else
        awk -v root="$srcdir/" -f "$srcdir/config/our_leaks.awk" "$log" || status=1
    fi
done
sh "$srcdir/config/count_tests.sh" . || status=1
exit "$status"
