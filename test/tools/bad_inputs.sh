#!/bin/bash
# bad_inputs.sh [WORD...]: what a newcomer may type that is wrong (bad_inputs.txt; only lines with one of the words).
# Each ends immediately, with the exit status of its line, and with a message that begins with the program's name and names
# what is wrong. Nothing of it prints a result, crashes, hangs, or leaves a file. Then: a full disk, --version, children.
set -u
# shellcheck disable=SC2034 # here, machines and call are named in the list
machines=$HETCOLL_SRCDIR/topology/machines call='--explain --ranks 4'
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
here=$work/here
passed=0 failed=0 skipped=0
mkdir -p "$here/folder"
: >"$here/empty"
head -c 5000 "$HETCOLL_BUILDDIR/hetcoll_place" >"$here/bytes"
printf 'hetcoll cluster 1\nnodes many of nothing\n' >"$here/cluster"
find "$here" | sort >"$work/before"
export OMPI_MCA_mca_base_component_path="$HETCOLL_BUILDDIR/component:${OMPI_COMPONENTS:-}"
mpirun=$(sed -n 's/^MPIRUN = //p' "$HETCOLL_BUILDDIR/Makefile")
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export EMU_KERNELS=$HETCOLL_BUILDDIR/emulated_gpu/lib/libhetcoll_emulated_kernels.so
export LD_LIBRARY_PATH=$HETCOLL_BUILDDIR/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none EMU_NODE=bad$$

verdict() # STATUS WHAT
{
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL  $2"
        head -n 5 "$work/out" "$work/err" 2>/dev/null | sed 's/^/        | /'
    fi
}

# runs PROGRAM ARGUMENT...: $status, $work/out and $work/err; 124 and 137: it hangs.
runs()
{
    status=0
    timeout -k 2 60 "$HETCOLL_BUILDDIR/$1" "${@:2}" >"$work/out" 2>"$work/err" </dev/null || status=$?
}

# job PARAMETER VALUE: two ranks with device memory. One line says what is wrong; the job runs with the default ($wanted
# is 0), or MPI_Init has failed (1).
job()
{
    [ -n "$mpirun" ] || return 0
    status=0
    env "OMPI_MCA_coll_hetcoll_$1=$2" timeout -k 2 60 "$mpirun" --mca coll hetcoll -n 2 "$HETCOLL_BUILDDIR/hetcoll_bench" \
        --memory device --sizes 64K --iterations 1 >"$work/out" 2>"$work/err" </dev/null || status=$?
    why=
    [ "$status" -eq "$wanted" ] || why="exit status $status, not $wanted"
    [ "$(grep -c "hetcoll: coll_hetcoll_$1" "$work/err")" -eq 1 ] || why="$why; not one line"
    grep "hetcoll: coll_hetcoll_$1" "$work/err" | grep -qF -e "$word" || why="$why; '$word' is not named"
    [ "$wanted" -eq 0 ] || word='MPI_Init fails'
    [ "$wanted" -ne 0 ] || word='is used'
    grep "hetcoll: coll_hetcoll_$1" "$work/err" | grep -qF "$word" || why="$why; '$word' is not said"
    [ -z "$why" ]
    verdict $? "coll_hetcoll_$1 '$2': $why"
}

while read -r wanted word program arguments; do
    case $wanted in '' | '#'*) continue ;; esac
    if [ $# -gt 0 ] && ! grep -qF -e "$(printf '%s\n' "$@")" <<<"$wanted $word $program $arguments"; then
        continue
    fi
    if [ "$program" = job ]; then
        eval "set_=($arguments)" && eval "word=$word"
        job "${set_[@]}"
        continue
    fi
    if [ ! -x "$HETCOLL_BUILDDIR/$program" ]; then
        skipped=$((skipped + 1))
        continue
    fi
    eval "set_=(${arguments//;/\\;})" && eval "word=$word"
    runs "$program" "${set_[@]}"
    why=
    [ "$status" -eq "$wanted" ] || why="exit status $status, not $wanted"
    grep -q "^$program: .*" "$work/err" || why="$why; no line begins with '$program: '"
    grep "^$program: " "$work/err" | grep -qF -e "$word" || why="$why; '$word' is not named"
    [ "$(wc -c <"$work/err")" -le 2500 ] || why="$why; more than 2500 characters"
    find "$here" | sort | cmp -s - "$work/before" || why="$why; it leaves a file"
    [ -z "$why" ]
    verdict $? "$program $arguments: $why"
done <"$HETCOLL_SRCDIR/test/tools/bad_inputs.txt"
echo "$passed wrong inputs get their message and exit status, $failed do not"

if [ $# -eq 0 ]; then
    # The script that draws: one line, no traceback.
    printf '{"results": [{"bytes": 1}], "cluster": "x"}' >"$work/results.json"
    printf '{"collectives": []}' >"$work/table.json"
    printf 'hetcoll measurements 1\ncolumns a b\n1 2\n' >"$work/columns"
    measured=$HETCOLL_SRCDIR/tools/hetcoll_tune_test.dgx.measurements
    while read -r arguments; do
        command -v python3 >/dev/null || break
        eval "set_=($arguments)"
        python3 "$HETCOLL_SRCDIR/bench/plot.py" "${set_[@]}" >"$work/out" 2>"$work/err" </dev/null
        [ $? -ne 0 ] && grep -q '^plot.py: ' "$work/err" && ! grep -q Traceback "$work/err"
        verdict $? "plot.py $arguments"
    done <<'END'

$here/bytes
$here/empty
$here/folder
$here/none
$work/columns
$measured --table $here/bytes
$measured --table $work/results.json
$measured --table $work/table.json
$measured --link-scale nan
$measured --link-scale -1
$measured --output $here/none/picture
--scaling $here/bytes
--scaling $work/table.json
--scaling $work/results.json
--scaling $here/folder
END

    # Output that cannot be written is a failure.
    full()
    {
        [ -x "$HETCOLL_BUILDDIR/$1" ] || return 0
        "$HETCOLL_BUILDDIR/$1" "${@:2}" >/dev/full 2>"$work/err" </dev/null
        [ $? -eq 1 ] && grep -q "^$1: .*stdout" "$work/err"
        verdict $? "$* on a full disk"
    }
    full hetcoll_info --topology "$machines/dgx1v.topology"
    full hetcoll_place "$HETCOLL_SRCDIR/examples/placement/vrgq.json"
    full hetcoll_sim --topology "$machines/pcie8.topology" --bytes 8
    full hetcoll_bench --sizes 8 --iterations 1
    for program in hetcoll_info hetcoll_place hetcoll_sim hetcoll_tune hetcoll_aggregator hetcoll_bench; do
        full $program --help
        full $program --version
        [ -x "$HETCOLL_BUILDDIR/$program" ] || continue
        version=$(sed -n 's/^PACKAGE_VERSION = //p' "$HETCOLL_BUILDDIR/Makefile")
        runs "$program" --version
        [ $status -eq 0 ] && grep -qE "^$program \(hetcoll\) $version(, commit [0-9a-f]+.*)?\$" "$work/out"
        verdict $? "$program --version"
    done

    # Tools that are not installed find the shipped topologies.
    if [ -x "$HETCOLL_BUILDDIR/hetcoll_sim" ]; then
        runs hetcoll_sim --topology pcie8 --bytes 8
        [ $status -eq 0 ]
        verdict $? "hetcoll_sim --topology pcie8 in the build folder"
        # A simulation does not outlive the tool that was killed.
        "$HETCOLL_BUILDDIR/hetcoll_sim" --topology "$machines/pcie8.topology" --bytes 64G --algorithm ring \
            >"$work/out" 2>&1 </dev/null &
        tool=$! child=
        for ((i = 0; i < 500 && ${#child} == 0; ++i)); do
            child=$(pgrep -P $tool)
            sleep 0.02
        done
        kill -9 $tool
        for ((i = 0; i < 500; ++i)); do
            state=$(ps -o stat= -p "${child:-1}")
            case $state in '' | Z*) break ;; esac
            sleep 0.02
        done
        [ -n "$child" ] && [ $i -lt 500 ]
        verdict $? "a killed hetcoll_sim leaves no child"
    fi
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
