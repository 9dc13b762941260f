#!/bin/bash
# The folder that carry.sh makes runs with the Open MPI in it. Only on Debian: it takes that Open MPI.
set -u
cd "$HETCOLL_BUILDDIR" || exit 1
dpkg-query -W libopenmpi3 openmpi-bin >/dev/null 2>&1 || exit 77
[ -z "${HETCOLL_SANITIZER:-}" ] || exit 77 # too large
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH OMPI_COMPONENTS MPIRUN
failures=0
# what STATUS NAME OUTPUT
what()
{
    if [ "$1" -eq 0 ]; then
        echo "ok    $2"
    else
        echo "FAIL  $2: $3"
        failures=$((failures + 1))
    fi
}
output=$(bash "$HETCOLL_SRCDIR/test/gpu/carry.sh" "$work/gpu" 2>&1)
what $? 'the folder is made, and small enough' "$output"
output=$(bash "$HETCOLL_SRCDIR/test/gpu/carry.sh" "$work/gpu" 2>&1)
[ $? -eq 1 ] && [[ $output == *'exists: give the name of a new folder'* ]]
what $? 'a folder that exists is refused' "$output"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
output=$("$work/gpu/run.sh" mpirun -n 1 bash -c "command -v mpirun; ldd '$work/gpu/build/test/mpi/device_allreduce'" 2>&1)
[[ $output == *"$work/gpu/usr/bin/mpirun"* ]] &&
    ! grep -E 'lib(mpi|open-pal|open-rte)[.]so' <<<"$output" | grep -qv "$work/gpu"
what $? "its Open MPI is the folder's" "$output"
output=$("$work/gpu/run.sh" conformance 2>&1)
what $? 'a part runs' "$output"
output=$("$work/gpu/run.sh" first_minutes tools 2>&1)
[ $? -eq 0 ] && [[ $output == *'tools: passed'* ]]
what $? 'a step of first_minutes.sh runs' "$output"
[ $failures -eq 0 ]
