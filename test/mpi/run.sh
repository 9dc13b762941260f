#!/bin/bash
# run.sh: the MPI tests, one line a case. From make check, which sets the environment; by hand:
# HETCOLL_BUILDDIR=BUILD test/mpi/run.sh [WORD...] runs the cases whose line has one of the words.
# A case fails on its exit status, its time limit, and any line that it was not meant to print: an
# unexpected warning, a failed check, or a leak that the emulated GPU reports.
set -u
build=${HETCOLL_BUILDDIR:-$PWD}
here=$(cd "$(dirname "$0")" && pwd)
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
mpirun=${MPIRUN:-$(configured MPIRUN)}
components=${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}
programs=$build/test/mpi
limit=${HETCOLL_TEST_SECONDS:-120} # of one case
words=("$@")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

export OMPI_MCA_mca_base_component_path="$build/component:$components"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export EMU_NODE=${EMU_NODE:-$$} # apart from other runs on this machine
export EMU_KERNELS=${EMU_KERNELS:-$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so}
emulated=$build/emulated_gpu/lib
case :${LD_LIBRARY_PATH:-}: in
*:"$emulated":*) ;;
*) export LD_LIBRARY_PATH="$emulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
esac

passed=0 failed=0 skipped=0
also_expected='' must_fail='' message='' launcher='' wrapper=''
# Lines that a case may print.
expected='^(ok|skip|note) |^$|^\[[^]]*\] hetcoll: runs on the emulated GPU'

# selected LINE
selected()
{
    [ ${#words[@]} -eq 0 ] && return 0
    local word
    for word in "${words[@]}"; do
        case $1 in *"$word"*) return 0 ;; esac
    done
    return 1
}

# What lies in /dev/shm, but for the files of Open MPI, UCX and the emulated GPU, which clean up after
# kills in their own way.
shared_files()
{
    find /dev/shm -mindepth 1 -maxdepth 1 -printf '%f\n' |
        sed -E '/^(emulated_gpu|vader_segment|open_mpi|ompi|ucx|sm_segment|gds|pmix)/d'
}

# case_ RANKS PML "MPIRUN OPTIONS" PROGRAM [ARGUMENT...]
# Variables of the environment go before it; also_expected is one more pattern of allowed lines.
# must_fail: the job must end by itself with an error and print a line of this pattern.
# message: exactly one line of the job has this pattern.
# launcher: a command that runs mpirun. wrapper: a command that runs the program on each rank.
case_()
{
    local ranks=$1 pml=$2 options=$3 program=$4
    shift 4
    local line="$program${*:+ $*}, $ranks ranks, $pml${options:+, $options}${launcher:+, $launcher}"
    line="$line${wrapper:+, $wrapper}" # without the folders
    line=${line//"$here/"/}
    line=${line//"$work/"/}
    selected "$line" || return 0
    local transport="--mca pml $pml"
    if [ "$pml" = ucx ]; then # without RDMA hardware ucx has to be told that shared memory will do
        transport="$transport --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any"
    fi
    local output=$work/output start=$SECONDS status=0 leaks=$work/leaks
    rm -f "$leaks"*
    shared_files >"$work/shared_before"
    # shellcheck disable=SC2086
    EMU_LEAKS_FILE="$leaks" timeout -k 5 "$limit" \
        $launcher "$mpirun" $transport $options -n "$ranks" $wrapper "$programs/$program" "$@" \
        >"$output" 2>&1 </dev/null ||
        status=$?
    local why='' allowed="$expected${also_expected:+|$also_expected}${message:+|$message}"
    if [ "$status" -eq 124 ] || { [ "$status" -eq 137 ] && [ -z "$must_fail" ]; }; then
        why="no end within $limit s"
    elif [ -n "$must_fail" ]; then
        if [ "$status" -eq 0 ]; then
            why="success, but it had to fail"
        elif ! grep -qE "$must_fail" "$output" || grep -q '^WRONG ' "$output"; then
            why="not the failure that was expected: $must_fail"
        fi
    elif [ "$status" -ne 0 ]; then
        why="exit status $status"
    elif grep -qvE "$allowed" "$output"; then
        why="unexpected output"
    elif ! grep -qE '^(ok|skip) ' "$output"; then
        why="no result"
    elif [ -s "$leaks" ]; then
        why="leaks"
    fi
    if [ -z "$why" ] && [ -n "$message" ] && [ "$(grep -cE "$message" "$output")" -ne 1 ]; then
        why="not exactly one message: $message"
    fi
    if [ -z "$why" ] && shared_files | grep -vxFf "$work/shared_before" >"$work/shared_left"; then
        why="left in /dev/shm: $(tr '\n' ' ' <"$work/shared_left")"
    fi
    local seconds=$((SECONDS - start))
    if [ -n "$why" ]; then
        failed=$((failed + 1))
        echo "FAILED  $line: $why ($seconds s)"
        # What was not meant to be printed, then the end of all that was.
        { grep -vE "$allowed" "$output" | head -n 30 && echo ...; tail -n 10 "$output"; } | sed 's/^/        | /'
        [ -s "$leaks" ] && sed 's/^/        | /' "$leaks" | head -n 20
    elif grep -q '^skip ' "$output"; then
        skipped=$((skipped + 1))
        echo "skipped $line: $(grep -m 1 '^skip ' "$output")"
    else
        passed=$((passed + 1))
        echo "passed  $line ($seconds s)"
        [ ${#words[@]} -eq 0 ] || grep '^note ' "$output" | sed 's/^/        | /'
    fi
}

# shellcheck source=test/mpi/cases.sh
. "$here/cases.sh"

if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
