# mpi_settings.sh: what the parts of check_gpu.sh that use Open MPI share; they source it. Sets mpirun.
# shellcheck shell=bash
build=${HETCOLL_BUILDDIR:-$PWD}
# shellcheck source=test/gpu/parts.sh
. "$(dirname "${BASH_SOURCE[0]}")/parts.sh"
configured() { sed -n "s/^$1 = //p" "$build/Makefile" 2>/dev/null; }
mpirun=${MPIRUN:-$(configured MPIRUN)}
components=${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}
[ -n "$mpirun" ] || omit 'there is no mpirun: configured --without-ompi; test/gpu/carry.sh makes a folder that has one'
[ -e "$build/component/mca_coll_hetcoll.so" ] || omit 'the component is not built'
export OMPI_MCA_mca_base_component_path="$build/component${components:+:$components}"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_pml=ob1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
passed=0 failed=0 skipped=0
job_output=$(mktemp) || exit 1
trap 'rm -f "$job_output"' EXIT

# job RANKS COMMAND...: a line with its result. Exit status 77 is a test that cannot run here.
job()
{
    local ranks=$1 status=0 start=$SECONDS line
    shift
    line="$(echo "$*" | sed 's,[^ ]*/,,g'), $ranks ranks" # without the folders
    timeout -k 5 60 "$mpirun" --mca coll hetcoll -n "$ranks" "$@" >"$job_output" 2>&1 </dev/null || status=$?
    case $status in
    0)
        passed=$((passed + 1))
        echo "passed  $line ($((SECONDS - start)) s)"
        ;;
    77)
        skipped=$((skipped + 1))
        echo "skipped $line: $(grep -m 1 '^skip ' "$job_output")"
        ;;
    *)
        failed=$((failed + 1))
        echo "FAILED  $line: status $status"
        { head -n -20 "$job_output" | grep -a hetcoll | head -n 5; tail -n 20 "$job_output"; } | sed 's/^/        | /'
        ;;
    esac
}

end_jobs()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $((passed + failed)) -gt 0 ] || omit 'nothing here can run'
    [ "$failed" -eq 0 ]
}
