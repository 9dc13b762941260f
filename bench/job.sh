# Shared by the scripts that measure. Source it, in bash or sh, with `build` set to the absolute path of a build
# folder.

# configured NAME: prints what configure found.
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }

# component_path BUILD_DIR: prints where jobs find that build's component, and Open MPI's own.
component_path() { echo "$1/component:$(configured OMPI_COMPONENTS)"; }

# Makes jobs load the component of the build folder.
use_component()
{
    OMPI_MCA_mca_base_component_path=$(component_path "$build")
    export OMPI_MCA_mca_base_component_path
    if [ "$(id -u)" = 0 ]; then # containers often have no other user
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}

use_emulated_gpu()
{
    export EMU_KERNELS="$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so"
    export LD_LIBRARY_PATH="$build/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

# For jobs on links of known speed: allows any number of ranks, and prices choose, not this machine's table.
use_emulated_links()
{
    use_component
    use_emulated_gpu
    export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_coll_hetcoll_tuning_table=none
}

# processor_time: prints "busy all", the time of all processors since the machine started.
processor_time() { awk '/^cpu / { busy = $2 + $3 + $4 + $7 + $8; print busy, busy + $5 + $6 }' /proc/stat; }

# busy_since "BUSY ALL": prints the busy share of all processors' time since then. From 0.50 on they may have been the
# limit, not the links, so such a measurement does not count.
busy_since() { echo "$1 $(processor_time)" | awk '{ printf "%.2f\n", ($3 - $1) / ($4 - $2) }'; }
counts() { awk -v busy="$1" 'BEGIN { if (busy >= 0.5) print "  does not count: processors busy" }'; }

# header: prints what every results file says about where it comes from.
header()
{
    echo "# date          $(date -u '+%F %T UTC')"
    echo "# machine       $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
    echo "# load          $(cut -d' ' -f1-3 /proc/loadavg) when it began"
    echo "# commit        $(cd "$here" && git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
    echo "# mpi           Open MPI $("$(configured MPIRUN)" --version | sed -n 's/.*) //p' | head -n 1)"
}
