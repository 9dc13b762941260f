#!/bin/sh
# explorer_test.sh: runs the model tests of the build, each of which proves something of the code under test for
# everything that C++ allows (docs/internals/proofs.md). Those named Heavy take minutes, and run in
# make check-model only.
set -u
cd "${HETCOLL_BUILDDIR:-.}" || exit 1
if [ -n "${HETCOLL_NO_MODEL:-}" ]; then
    echo "skipped: $HETCOLL_NO_MODEL"
    exit 77
fi
[ -n "${HETCOLL_MODEL_HEAVY:-}" ] || set -- "--gtest_filter=-Heavy*:*/Heavy*"
status=0
for program in ${HETCOLL_MODEL_PROGRAMS:?}; do
    "$program" "$@" || status=1
done
exit "$status"
