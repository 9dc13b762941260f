# Read by the tests of these examples: Open MPI as configure found it, with the component of the build tree.
# shellcheck shell=bash
build=${HETCOLL_BUILDDIR:-$PWD}
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
mpirun=${MPIRUN:-$(configured MPIRUN)}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export OMPI_MCA_mca_base_component_path="$build/component:${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
passed=0 failures=0

# verdict STATUS WHAT
verdict()
{
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
        echo "passed  $2"
    else
        failures=$((failures + 1))
        echo "FAILED  $2"
        tail -n 20 "$work/out" "$work/errors" | sed 's/^/        | /'
    fi
}

# loss: of the run whose output is in $work/out, or 0
loss()
{
    sed -n 's/^loss \([0-9.]*\).*/\1/p' "$work/out" | grep . || echo 0
}

# near A B: both are losses, and differ by less than 1 %
near()
{
    awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && b > 0 && d < 0.01 * b && d > -0.01 * b) }'
}

finish()
{
    echo "$passed passed, $failures failed"
    [ "$failures" -eq 0 ]
}
