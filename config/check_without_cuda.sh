#!/bin/sh
# check_without_cuda.sh DIR "TEST...": from a configured build folder, builds once more in DIR without CUDA, configured
# alike otherwise, and runs those of the tests that this build has.
set -eu
dir=$1
tests=$2
eval "set -- $(./config.status --config)"
srcdir=$(sed -n 's/^abs_srcdir = //p' Makefile)
jobs=$(nproc 2>/dev/null || echo 1)
mkdir -p "$dir"
cd "$dir"
[ -f Makefile ] || "$srcdir/configure" -q "$@" --without-cuda
make -s -j"$jobs"
status=0
make -s -j"$jobs" check TESTS="$tests" check_PROGRAMS="$(echo "$tests" | tr ' ' '\n' | grep '^test/unit/')" || status=$?
sh "$srcdir/config/count_tests.sh" . || status=1
exit "$status"
