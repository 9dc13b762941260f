#!/bin/bash
# instructions.sh BUILD_DIR [BASE_BUILD_DIR]: counts the instructions of one call on a rank, with callgrind: 8 bytes,
# 2 ranks, every collective on static host memory, Allreduce on the emulated GPU's, and MPI_Comm_dup, a first call and
# MPI_Comm_free. The least of 100 calls counts, on the rank that has fewer. Both ranks and the emulated GPU share one
# core and yield it, so that a rank that asks once more finds what it waits for: polls do not count. Columns are
# Open MPI without hetcoll, with the component of BASE_BUILD_DIR if given, with that of BUILD_DIR, and how many of the
# last are in hetcoll's own code. Writes a results file to stdout. CALLS picks some of the calls. Needs valgrind, and
# `make bench/counted_calls` in BUILD_DIR.
set -u
build=$(cd "${1:?instructions.sh BUILD_DIR [BASE_BUILD_DIR]}" && pwd) || exit 1
base=${2:+$(cd "$2" && pwd)} || exit 1
calls=${CALLS:-allreduce bcast reduce allgather allgatherv reduce_scatter reduce_scatter_block alltoall alltoallv gather
    gatherv scatter scatterv scan exscan barrier allreduce/device duplicate}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/job.sh"
use_component
use_emulated_gpu
mpirun=$(configured MPIRUN)
if [ ! -x "$build/bench/counted_calls" ]; then
    echo "instructions.sh: $build/bench/counted_calls is missing: make -C $build bench/counted_calls" >&2
    exit 1
elif ! command -v valgrind >/dev/null; then
    echo "instructions.sh: valgrind is missing: apt install valgrind" >&2
    exit 1
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
core=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')

# count BUILD_DIR COMPONENTS CALL: prints the instructions of the call, and those of hetcoll's code among them.
count()
{
    local word=${3%/*} memory=host
    [ "$word" = "$3" ] || memory=${3#*/}
    rm -f "$work"/out.*
    [ -e "$1/component/mca_coll_hetcoll.so" ] || { echo "instructions.sh: no component in $1" >&2; exit 1; }
    OMPI_MCA_mca_base_component_path=$(component_path "$1") OMPI_MCA_coll_hetcoll_tuning_table=none \
        OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 EMU_NODE="instructions.$$" \
        timeout 300 taskset -c "$core" "$mpirun" --mca pml ob1 --mca coll "$2" -n 2 valgrind --tool=callgrind -q \
        --callgrind-out-file="$work/out.%p" --dump-after=hetcoll_counted_call \
        --toggle-collect=hetcoll_counted_call "$build/bench/counted_calls" "$word" "$memory" \
        >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    python3 - "$work" <<'PYTHON'
import glob, re, sys
def instructions(path):
    "All, and those in hetcoll's component, of one dump. A line after calls= repeats what the callee's lines say."
    names, ours, skip, both = {}, False, False, [0, 0]
    for line in open(path):
        if match := re.match(r"ob=\((\d+)\)(?: (.*))?", line):
            if match[2]:
                names[match[1]] = match[2]
            ours = "hetcoll" in names[match[1]].rsplit("/", 1)[-1]
        elif match := re.match(r"cob=\((\d+)\) (.*)", line):
            names[match[1]] = match[2]
        elif line.startswith("calls="):
            skip = True
        elif re.match(r"[+*\d-]", line):
            if not skip:
                cost = int((line.split() + ["0"])[1])
                both[0] += cost
                both[1] += cost if ours else 0
            skip = False
    return both
print(*min(both for path in glob.glob(sys.argv[1] + "/out.*.*") if (both := instructions(path))[0] > 0))
PYTHON
}

header
[ -z "$base" ] || echo "# base          $(cd "$base" && git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
echo "# ranks         2, ob1, 8 bytes of float, least of 100 calls under callgrind"
echo "#"
printf '# %-22s %9s %9s %9s %9s %8s %8s\n' call "Open MPI" ${base:+base} this "hetcoll's" ${base:+/base} "/Open MPI"
for call in $calls; do
    plain=- before=
    [ "${call#*/}" = device ] || { read -r plain _ < <(count "$build" ^hetcoll "$call") || exit 1; }
    [ -z "$base" ] || { read -r before _ < <(count "$base" hetcoll "$call") || exit 1; }
    read -r this ours < <(count "$build" hetcoll "$call") || exit 1
    printf '  %-22s %9s %9s %9s %9s' "$call" "$plain" $before "$this" "$ours"
    # shellcheck disable=SC2086
    for other in $before $plain; do
        [ "$other" = - ] && printf ' %8s' - || printf ' %8.3f' "$(echo "$this $other" | awk '{ print $1 / $2 }')"
    done
    echo
done
