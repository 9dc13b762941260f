#!/bin/bash
# bench_test.sh: hetcoll_bench of other collectives than Allreduce, in both places, by nccl-tests' options, within a
# budget; and that it sees a wrong result.
# shellcheck disable=SC2154
. "$(dirname "$0")/jobs.sh"
export EMU_NODE=bench$$
spoils=
# bench STATUS RANKS ARGUMENT...
bench()
{
    local status=$1 ranks=$2
    shift 2
    timeout -k 5 600 "${MPIRUN:-$(configured MPIRUN)}" -n "$ranks" ${spoils:+-x "LD_PRELOAD=$spoils"} "$build/hetcoll_bench" "$@" \
        >"$work/out" 2>"$work/err" </dev/null
    [ $? -eq "$status" ]
    verdict $? "$ranks ranks: hetcoll_bench $*"
}
has()
{
    grep -qE -- "$1" "$work/out" "$work/err"
    verdict $? "prints $1"
}

words='allreduce bcast reduce allgather allgatherv reduce_scatter reduce_scatter_block alltoall alltoallv alltoallw gather
    gatherv scatter scatterv scan exscan neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv
    neighbor_alltoallw'
for memory in device host; do
    bench 0 3 --memory $memory --collective all --both -b 48 -e 300000 -f 6250 -n 1 -w 0 --json "$work/$memory.json"
    has 'every element right'
    python3 - "$work/$memory.json" $words >>"$work/out" 2>&1 <<'END'
import json, sys
results = json.load(open(sys.argv[1]))["results"]
assert [r["collective"] for r in results] == [word for word in sys.argv[2:] for _ in range(2)], results
one_place = [r["collective"] for r in results if "in_place" not in r]
assert all(word == "bcast" or word.startswith("neighbor_") for word in one_place) and len(one_place) == 12, one_place
assert all(r["wrong"] == 0 for r in results)
assert all(r.get("in_place", r)["wrong"] == 0 for r in results)
factor = {r["collective"]: r["busbw_gbs"] / r["algbw_gbs"] for r in results}
assert abs(factor["allreduce"] - 4 / 3) < 1e-9 and all(abs(factor[word] - 2 / 3) < 1e-9 for word in ("allgather", "alltoallw"))
assert factor["bcast"] == 1 and factor["neighbor_alltoall"] == factor["neighbor_allgatherv"] == 1
END
    verdict $? 'and its JSON has all of them, twice where MPI has both places'
done
python3 "$source/tools/schema_check.py" "$source/tools/schema" "$work/device.json" >"$work/out" 2>&1
verdict $? 'as the schema says'

# Its report of small calls on device memory: the first one, and the floor under each.
bench 0 2 --memory device --sizes 8,64K,128K -n 3 --json "$work/floor.json"
has '^# first_call    [0-9.]+ us, MPI_Allreduce of 8 bytes'
python3 - "$work/floor.json" >>"$work/out" 2>&1 <<'END'
import json, sys
results = json.load(open(sys.argv[1]))["results"]
assert all(("floor_kernel_us" in r) == (r["bytes"] <= 65536) for r in results) and len(results) == 3, results
assert all(r["floor_launch_us"] > 0 for r in results if "floor_launch_us" in r), results
END
verdict $? 'and the floor of each small call, of no large one'
python3 "$source/tools/schema_check.py" "$source/tools/schema" "$work/floor.json" >"$work/out" 2>&1
verdict $? 'as the schema says, too'
bench 0 3 --memory device --sizes 8 -n 3 --own-kernel 64K --algorithms auto,persistent
has '^# own_kernels   each rank sums 65536 bytes before each call'
has 'every element right'
bench 2 2 --memory host --sizes 8 --own-kernel 64K
has '--own-kernel needs --memory device or managed'

bench 0 3 --memory device --collective bcast,reduce,allgather,reduce_scatter --sizes 300000 -n 1
has 'bcast|300000'
[ "$(grep -c '^ .* hetcoll ' "$work/out")" -eq 4 ]
verdict $? 'four collectives are served by schedules of hetcoll'
bench 0 2 --memory device --collective alltoall --sizes 4096 -n 1
has 'open_mpi +staged'
for ranks in 1 2; do # neighbors may be oneself, or twice the same
    bench 0 $ranks --collective all --both --sizes 64 -n 1
    has 'every element right'
done
bench 0 2 --collective bcast,neighbor_alltoall --in-place --sizes 64 -n 1
has 'in place where MPI has that'
bench 1 2 --collective alltoallw --sizes 4G -n 1
has 'MPI_Alltoallw counts the bytes before a block in an int'

# nccl-tests' words.
bench 0 2 --memory device -b 1K -e 16K -f 4 -n 2 -w 1 -c 0 -g 1 -d float -o sum
[ "$(grep -c '^ *[0-9]' "$work/out")" -eq 3 ] && grep -qE '^ +16384 ' "$work/out"
verdict $? 'three sizes from -b to -e'
has ' - *([|]|$)'
bench 2 2 --memory device -g 2 --sizes 8
bench 2 2 --memory device -b 4K -e 1K
has 'no more than -e'
bench 2 2 --collective broadcast
has '--collective broadcast: write all, or some of allreduce, bcast'
bench 2 2 --collective bcast --algorithms all --memory device
bench 2 2 --both --in-place

bench 0 2 -b 8 -e 32 -i 12 -n 1 -w 1 -t 1 -z 0
[ "$(grep -cE '^ +(8|20|32) ' "$work/out")" -eq 3 ]
verdict $? 'and steps of -i bytes'
has '^# Avg bus bandwidth    : [0-9.]+$'
bench 2 2 -b 8 -e 1T -i 1
has '-i 1 is not a step from 8 to 1T in fewer than 100000 sizes'
# OSU's words, where they are others than nccl-tests'.
bench 0 1 -x 2 --sizes 8 -n 1
bench 2 2 -m 8:1M
has "'8:1M' is OSU's range of sizes, which is --sizes 8:1M here"
bench 2 2 -d cuda
has "--dtype cuda: .*; OSU's -d cuda is --memory device here"

# Two files, call by call.
bench 0 2 --collective bcast,reduce --sizes 8,64,4K -n 2 --json "$work/other.json"
bench 0 2 --collective allreduce,reduce --both --sizes 8,64 -n 2 --json "$work/one.json"
"$build/hetcoll_bench" compare "$work/one.json" "$work/one.json" >"$work/out" 2>&1 &&
    [ "$(grep -cE '^(allreduce|reduce)(, in place)? +(8|64) .* 1\.000  ' "$work/out")" -eq 8 ] &&
    grep -q '^# geometric mean of 8: 1.000$' "$work/out" && ! grep -q second: "$work/out"
verdict $? 'a file is as fast as itself'
"$build/hetcoll_bench" compare "$work/one.json" "$work/other.json" >"$work/out" 2>&1
[ $? -eq 0 ] && [ "$(grep -cE '^reduce +(8|64) ' "$work/out")" -eq 2 ] && grep -q '^# in one file alone: 10$' "$work/out" &&
    grep -A 1 '^# operation ' "$work/out" | grep -q '#   second:  *MPI_Bcast'
verdict $? 'what two files have in common, and how they differ'
echo '{"tool": "another"}' >"$work/bad.json"
for file in /no/file "$work/bad.json" "$work/out"; do
    "$build/hetcoll_bench" compare "$work/one.json" "$file" >"$work/err" 2>&1
    [ $? -eq 2 ] && grep -qF "$file" "$work/err"
    verdict $? "names $file, which is no such file"
done

# A budget holds, and what is left out is said; how far it is.
start=$(date +%s)
bench 0 2 --memory device --collective all --both --sizes 8:16M --budget 4 --progress
[ $(($(date +%s) - start)) -le 60 ]
verdict $? 'ends soon after its budget'
has 'hetcoll_bench: job 1 of [0-9]+: allreduce of 8 bytes'
has '# --budget is used up: [0-9]+ measurements are left out'

# JSON on stdout is JSON alone.
bench 0 2 --sizes 8,64 -n 1 --json -
python3 -m json.tool "$work/out" >/dev/null
verdict $? 'is JSON'
bench 1 2 --sizes 8 -n 1 --json /no/file
has '/no/file cannot be written'

# A wrong element is seen: of every collective.
for word in $words; do
    spoils=$build/test/mpi/spoil.so
    bench 1 3 --collective "$word" --sizes 1200 -n 1
    spoils=
    has 'WRONG|[0-9]+ wrong'
done

sum_up
