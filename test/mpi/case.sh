# case.sh: what the MPI tests share; sourced by cases/AREA.sh, of which each is a test of make check, one
# line a case. The arguments are words: only cases whose line has one of them run.
# A case fails on its exit status, any line that it was not meant to print (an unexpected warning, a failed
# check, a leak that the emulated GPU reports), and on what it leaves: processes, files in /dev/shm.
# A job that names an algorithm fails if that has not run on every rank (test/mpi/check.cc).
# shellcheck shell=bash
set -u
build=$(cd "${HETCOLL_BUILDDIR:-.}" && pwd) || exit 1
[ -f "$build/Makefile" ] || { echo "no build in $build: HETCOLL_BUILDDIR names its folder" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
mpirun=${MPIRUN:-$(configured MPIRUN)}
components=${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}
programs=$build/test/mpi
limit=${HETCOLL_TEST_SECONDS:-900} # of one case: against hangs, many times what a busy machine needs
words=("$@")
work=$(mktemp -d) || exit 1
trap end_all EXIT

export OMPI_MCA_mca_base_component_path="$build/component:$components"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export EMU_NODE=${EMU_NODE:-cases$$} # apart from other runs on this machine
export EMU_KERNELS=${EMU_KERNELS:-$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so}
emulated=$build/emulated_gpu/lib
case :${LD_LIBRARY_PATH:-}: in
*:"$emulated":*) ;;
*) export LD_LIBRARY_PATH="$emulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
esac

passed=0 failed=0 skipped=0 cases=0 place=0
also_expected='' must_fail='' message='' launcher='' wrapper='' other_algorithm=''
# Lines that a case may print.
expected='^(ok|skip|note) |^$|^\[[^]]*\] hetcoll: runs on the emulated GPU'

# The option that makes hetcoll serve Allreduce, that for an algorithm too, and link files.
forced="--mca coll hetcoll"
with() { echo "$forced --mca coll_hetcoll_algorithm $1"; }
machines=$here/../../topology/machines
export HETCOLL_SRCDIR=${HETCOLL_SRCDIR:-$here/../..}

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

# The processes that have this case's mark in their environment. Those that are ending have none.
marked() { grep -lsxz "HETCOLL_TEST_CASE=$$.$cases" /proc/[0-9]*/environ | cut -d / -f 3; }

# marked_end: prints the processes of this case that do not end, and ends them.
marked_end()
{
    local end=$((SECONDS + 60)) pid
    while [ -n "$(marked)" ] && [ $SECONDS -lt $end ]; do sleep 0.05; done
    for pid in $(marked); do
        echo "$pid ($(tr '\0' ' ' <"/proc/$pid/cmdline"))"
        kill -9 "$pid"
    done
}

# Files in /dev/shm that the component might have made. The files of the emulated GPU, Open MPI and UCX have
# other names: they clean up in their own way after jobs that were killed.
shared_files() { find /dev/shm -mindepth 1 -maxdepth 1 -user "$(id -u)" -name 'hetcoll*' -printf '%f\n'; }

# hostility: EMU_HOSTILE of the case at $place.
hostility()
{
    case ${HETCOLL_TEST_HOSTILE:-half} in
    all) echo 1 ;;
    none) echo 0 ;;
    *) echo "${EMU_HOSTILE:-$((place % 2))}" ;;
    esac
}

# case_ RANKS PML "MPIRUN OPTIONS" PROGRAM [ARGUMENT...]
# Variables of the environment go before it; also_expected is one more pattern of allowed lines.
# must_fail: the job must end by itself with an error and print a line of this pattern.
# message: exactly one line of the job has this pattern.
# EMU_HOSTILE: whether the driver does all that one may do. Unset: in every second case of an area, by its
# place. HETCOLL_TEST_HOSTILE=all or none says it for all cases.
# launcher: a command that runs mpirun. wrapper: a command that runs the program on each rank.
# other_algorithm: another algorithm than the one that the options name has to run, or "any".
case_()
{
    local ranks=$1 pml=$2 options=$3 program=$4
    shift 4
    local line="$program${*:+ $*}, $ranks ranks, $pml${options:+, $options}${launcher:+, $launcher}"
    line="$line${wrapper:+, $wrapper}" # without the folders
    line=${line//"$here/"/}
    line=${line//"$work/"/}
    place=$((place + 1))
    local hostile
    hostile=$(hostility)
    [ "$hostile" = 0 ] || line="$line, hostile driver"
    selected "$line" || return 0
    cases=$((cases + 1))
    local transport="--mca pml $pml"
    if [ "$pml" = ucx ]; then # without RDMA hardware ucx has to be told that shared memory will do
        transport="$transport --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any"
    fi
    local output=$work/output start=$SECONDS status=0 leaks=$work/leaks left
    rm -f "$leaks"*
    shared_files >"$work/shared_before"
    # shellcheck disable=SC2086
    EMU_HOSTILE=$hostile EMU_LEAKS_FILE="$leaks" HETCOLL_TEST_CASE=$$.$cases HETCOLL_TEST_OUTPUT=$output \
        HETCOLL_TEST_ALGORITHM=$other_algorithm timeout -k 5 "$limit" $launcher "$mpirun" $transport $options -n "$ranks" $wrapper "$programs/$program" "$@" \
        >"$output.stdout" 2>"$output" </dev/null ||
        status=$?
    cat "$output.stdout" >>"$output" # mpirun would mix parts of their lines
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
    left=$(marked_end)
    if [ -z "$why" ] && [ -n "$left" ]; then
        why="processes that do not end: $left"
    fi
    if [ -z "$why" ] && shared_files | grep -vxFf "$work/shared_before" >"$work/shared_left"; then
        why="left in /dev/shm: $(tr '\n' ' ' <"$work/shared_left")"
    fi
    local seconds=$((SECONDS - start))
    if [ -n "$why" ]; then
        failed=$((failed + 1))
        echo "FAILED  $line: $why ($seconds s)"
        # Shows lines that were not expected, then the end of the output.
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

# Several nodes on this machine, by words.
nodes_() # nodes_ NODES PML OPTIONS PROGRAM...
{
    local nodes=$1
    shift
    wrapper="$here/on_nodes.sh $nodes" case_ "$(echo "$nodes" | tr , '\n' | grep -c .)" "$@"
}

# And by namespaces: other host names, other shared memory, TCP in between.
hosts_() # hosts_ RANKS HOST:SLOTS,... PML OPTIONS PROGRAM...
{
    local ranks=$1 hosts=$2 pml=$3 options=$4
    shift 4
    options="$options --mca plm_rsh_agent $here/as_host.sh --mca routed direct"
    case_ "$ranks" "$pml" "$options --mca btl self,vader,tcp -H $hosts" "$@"
}

# skip_ WHY: cases that cannot run on this machine.
skip_()
{
    place=$((place + 1))
    selected "$*" || return 0
    skipped=$((skipped + 1))
    echo "skipped $*"
}

# end_cases: after the last one.
end_cases()
{
    if [ "$skipped" -gt 0 ]; then
        echo "$passed passed, $failed failed, $skipped skipped"
    else
        echo "$passed passed, $failed failed"
    fi
    [ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
    exit
}

# The last process of the emulated GPU removes what killed ranks left, but there may be none.
end_all()
{
    rm -rf "$work" /dev/shm/emulated_gpu."$(id -u)"."$EMU_NODE".*
}
