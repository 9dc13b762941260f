#!/bin/bash
# The output of hetcoll_place for the example, its rank files in mpirun, and its errors about wrong input.
set -u
place=$HETCOLL_BUILDDIR/hetcoll_place
example=$HETCOLL_SRCDIR/examples/placement/vrgq.json
. "$HETCOLL_SRCDIR/test/verdict.sh"
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi


# says STATUS TEXT ARGUMENT...
says()
{
    local status=$1 text=$2
    shift 2
    "$place" "$@" >"$work/out" 2>&1
    [ $? -eq "$status" ] && grep -qF -- "$text" "$work/out"
    verdict $? "hetcoll_place ${*##*/}: $text"
}

says 0 'NP            4 x 4        640.0     1148.0   60.0%   44.3%       3288.0          0.0' "$example"
says 0 'ED-local      4 x 4       1148.0     1148.0    0.0%    0.0%          0.0       2400.0' "$example"
says 0 'worker 2        33 samples, loss weight 0.257812' "$example" --allocation HD
says 0 'rank 15=node3 slot=12-15' "$example" --allocation NP --rankfile
says 0 '"schema": 1' "$example" --json -
"$place" "$example" --json "$work/all.json" && [ -s "$work/all.json" ]
verdict $? 'all allocations as JSON in a file'
"$place" "$example" --allocation HD --json "$work/one.json" && [ -s "$work/one.json" ]
verdict $? 'one allocation as JSON in a file'
says 1 'cannot be written (Is a directory)' "$example" --json "$work"
python3 "$HETCOLL_SRCDIR/tools/schema_check.py" "$HETCOLL_SRCDIR/tools/schema" "$work/all.json" "$work/one.json" >"$work/out" 2>&1
verdict $? 'the JSON is what its schema says'
python3 - "$work/one.json" <<'END' >"$work/out" 2>&1
import json, sys
place = json.load(open(sys.argv[1]))
assert place["workers"][2]["samples"] == 33 and place["workers"][3]["stages"][3]["rank"] == 15
END
verdict $? 'and has what is printed'
says 1 'cannot be opened: No such file' "$work/none"
says 1 'HD is not possible: the model does not fit into the memory' "$example" --allocation HD --in-flight 1000
says 2 'hetcoll_place: file is required'
says 2 "--allocation: 'best' is none of NP, ED, HD, ED-local" "$example" --allocation best
printf '{\n"format": "hetcoll placement 1", "gpus": {}, "nodes": 3, "model": {}}' >"$work/broken"
says 1 "broken:2: 'nodes' is a whole number, not a list" "$work/broken"

sed '0,/"cores": 16/s//"cores": 3/' "$example" >"$work/cores"
says 1 "cores:10: node 'node0' has 3 cores for 4 GPUs" "$work/cores"
printf '{"format": "hetcoll placement 1", "gpus": {"V": {"samples_per_s": 1, "memory_gb": 1}}, "nodes": [{"name": "n", "gpus": [%s"V"]}],
    "model": {"parameters_mb": 1, "batch": 1000000}}' "$(yes '"V", ' | head -n 2999 | tr -d '\n')" >"$work/many"
says 1 "'batch' 1000000 for each of 3000 workers is too much to split" "$work/many" --allocation ED

# The links of a node from a topology file.
sed 's/"gpus": \["V", "V", "V", "V"\],/& "topology": "'"${HETCOLL_SRCDIR//\//\\/}"'\/topology\/machines\/dgx1v.topology:0-2",/' \
    "$example" >"$work/links"
says 1 "links:10: topology '$HETCOLL_SRCDIR/topology/machines/dgx1v.topology:0-2' has 3 GPUs and node 'node0' 4" "$work/links"
sed 's/topology:0-2/topology:0-3/' "$work/links" >"$work/links4"
says 0 'ED-local ' "$work/links4"

# The example in the documentation is one.
sed -n '/^```json/,/^```/p' "$HETCOLL_SRCDIR/docs/unequal-gpus.md" | grep -v '^```' |
    sed 's/dgx1v:/'"${HETCOLL_SRCDIR//\//\\/}"'\/topology\/machines\/dgx1v.topology:/' >"$work/documented"
says 0 'HD            2 x 4' "$work/documented"

# 50 GB/s are 10 of its minibatches a second for each of the four ways out of the node.
sed 's/"boundary_mb": 100, "batch": 32/"boundary_mb": 1250, "batch": 4/; s/"network_gbps": 6.8, //' "$work/documented" >"$work/narrow"
says 0 'worker 0: 40.0 samples/s' "$work/narrow" --allocation ED-local

# cluster GPUS HOST...: GPUS as "V", "V" on each host, which has two cores
cluster()
{
    local nodes='' host gpus=$1
    shift
    for host in "$@"; do
        nodes="$nodes${nodes:+,}{\"name\": \"$host\", \"cores\": 2, \"gpus\": [$gpus]}"
    done
    echo "{\"format\": \"hetcoll placement 1\", \"gpus\": {\"V\": {\"samples_per_s\": 1, \"memory_gb\": 9}},
        \"nodes\": [$nodes], \"model\": {\"parameters_mb\": 1}}" >"$work/cluster"
    "$place" "$work/cluster" --allocation ED-local --rankfile >"$work/rankfile"
}

# runs HOSTS EXPECTED OPTION...: which rank is where, and which GPU its wrapper gives it
runs()
{
    local hosts=$1 expected=$2
    shift 2
    # shellcheck disable=SC2016
    timeout 900 "$MPIRUN" "$@" -H "$hosts" --rankfile "$work/rankfile" sh -c 'echo "$OMPI_COMM_WORLD_RANK $(uname -n) $(
        sed -n "s/^# rank $OMPI_COMM_WORLD_RANK has GPU //p" "'"$work"'/rankfile")"' 2>&1 </dev/null | sort >"$work/out"
    [ "$(cat "$work/out")" = "$expected" ]
    verdict $? "mpirun takes the rank file of $hosts"
}

if [ -z "${MPIRUN:-}" ] || [ "$(nproc)" -lt 2 ]; then
    echo "skipped mpirun: there is none, or one core only"
else
    host=$(uname -n)
    cluster '"V", "V"' "$host"
    runs "$host:2" "0 $host 0
1 $host 1" -n 2
    cluster '"V"' "$host" # slot=0-1
    runs "$host:1" "0 $host 0" -n 1
    if unshare --uts --mount --ipc true 2>/dev/null; then
        cluster '"V", "V"' nodea nodeb
        runs nodea:2,nodeb:2 "0 nodea 0
1 nodeb 0
2 nodea 1
3 nodeb 1" -n 4 --mca plm_rsh_agent "$HETCOLL_SRCDIR/test/mpi/as_host.sh" --mca routed direct
    fi
fi
sum_up
