#!/bin/sh
# regenerate_table.sh [-b BUILD] [OPTION...]: measures this machine in full, in less than ten minutes, and writes the
# tuning table and the raw measurements next to it. OPTIONs are those of hetcoll_tune, such as --output FILE,
# --ranks 2,4,8, --limit SECONDS, and after -- those of mpirun. Measures the installed hetcoll, or with -b that of a
# build folder. --from-measurements FILE rebuilds a table: the same measurements give the same file.
set -u
build=
if [ "${1:-}" = -b ]; then
    build=$(cd "${2:?-b needs a build folder}" && pwd) || exit 1
    shift 2
fi
if [ -z "$build" ]; then
    exec hetcoll_tune "$@"
fi
components=$(sed -n 's/^OMPI_COMPONENTS = //p' "$build/Makefile")
export OMPI_MCA_mca_base_component_path="$build/component:$components"
exec "$build/hetcoll_tune" "$@"
