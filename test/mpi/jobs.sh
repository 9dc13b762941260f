# jobs.sh: what tests of programs in jobs share; sourced by them. Sets build and source, has jobs load the component of
# the build folder, and brings verdict.sh.
# shellcheck shell=bash
set -u
build=${HETCOLL_BUILDDIR:-$PWD}
source=${HETCOLL_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
export OMPI_MCA_mca_base_component_path="$build/component:${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}"
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_coll=hetcoll
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
. "$source/test/verdict.sh"
