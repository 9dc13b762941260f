#!/bin/bash
# stops.sh [BUILD_DIR [STOPS [MISTAKES]]]: who is missing is named, and who calls differently. Jobs of 2 to 8
# ranks on one to three nodes run calls of all kinds, and in each of STOPS (1,000) of these a rank comes
# late. In a tenth as many jobs a rank leaves for good. Every late rank has to be named by a line, and nobody
# else by any. Then ranks call differently, MISTAKES (200) times and more, and all of them have to get the
# error. Four jobs run at a time. Takes a quarter of an hour. Writes a results file to stdout.
set -u
build=$(cd "${1:-${HETCOLL_BUILDDIR:-.}}" && pwd) || exit 1
here=$(cd "$(dirname "$0")/../.." && pwd)
stops=${2:-1000} mistakes=${3:-200}
. "$here/bench/job.sh"
use_emulated_links
export OMPI_MCA_btl_vader_single_copy_mechanism=none
mpirun=$(configured MPIRUN)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
nodes=('0,0' '0,0,0' '0,0,0,0' '0,0,0,0,0,0,0,0' '0,1' '0,0,1' '0,0,1,1' '0,0,0,0,1,1,1,1' '0,1,2' '0,0,1,1,2,2')
late_ms=2200 # report_after is 1 s: one line, the next one after 4 s
header

# job NAME NODES PROGRAM ARGUMENT...: its output and its exit status are in files of this name.
job()
{
    local name=$1 on=$2 program=$3 status=0
    shift 3
    EMU_NODE="$name.$$" timeout 1800 "$mpirun" --mca pml ob1 --mca coll hetcoll --mca coll_hetcoll_report_after 1 \
        -n "$(echo "$on" | tr , '\n' | grep -c .)" "$here/test/mpi/on_nodes.sh" "$on" "$build/test/mpi/$program" "$@" \
        >"$work/$name" 2>&1 </dev/null || status=$?
    echo "$on $status" >"$work/$name.end"
}

for i in "${!nodes[@]}"; do
    [ $((i % 4)) -ne 0 ] || wait
    job "stops.$i" "${nodes[$i]}" stops $(((stops + ${#nodes[@]} - 1) / ${#nodes[@]})) $late_ms "$i" &
done
wait
leavers=$(((stops / 10 + ${#nodes[@]} - 1) / ${#nodes[@]}))
for ((i = 0; i < leavers * ${#nodes[@]}; i++)); do
    [ $((i % 4)) -ne 0 ] || wait
    OMPI_MCA_orte_enable_recovery=1 job "left.$i" "${nodes[$((i % ${#nodes[@]}))]}" stops 0 $late_ms "$i" leaves &
done
wait
for i in "${!nodes[@]}"; do
    [ $((i % 4)) -ne 0 ] || wait
    job "calls.$i" "${nodes[$i]}" different_calls mistakes $(((mistakes + ${#nodes[@]} - 1) / ${#nodes[@]})) &
done
wait

python3 - "$work" "${#nodes[@]}" "$leavers" "$late_ms" <<'PYTHON'
import re, sys
work, jobs, leavers, late_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) / 1000
bad = 0

def read(name):
    nodes, status = open(f"{work}/{name}.end").read().split()
    return nodes.split(","), int(status), open(f"{work}/{name}", errors="replace").read()

def fail(what):
    global bad
    bad += 1
    print("FAIL  " + what)

print("# A line for the jobs of each kind: node of each rank, late ranks, lines, late ranks that no line names, lines that name")
print("# another rank or a rank that was not late, lines that name two nodes of which one is missing.")
kinds, hows, rows = {}, {}, {}
for name in [f"stops.{i}" for i in range(jobs)] + [f"left.{i}" for i in range(jobs * leavers)]:
    nodes, status, text = read(name)
    late = {int(c): (int(r), how, kind) for c, kind, r, how in
            re.findall(r"note stop call (\d+) kind (\d+) rank (\d+) (\w+)", text)}
    named, wrong, lines, pairs = set(), [], 0, 0
    for line in text.splitlines():
        found = re.search(r"hetcoll: rank \d+ waits for (\d+) s in call number (\d+) on [^:]*: (.*)", line)
        if not found:
            continue
        lines += 1
        call, what = int(found[2]), found[3]
        rank, how, kind = late.get(call, (-1, "", ""))
        state = {"left": "has (?:ended|died)", "stopped": "is stopped", "sleeps": "sleeps", "computes": "(?:runs|sleeps)", "waits": "(?:runs|sleeps)"}.get(how)
        if how != "left" and int(found[1]) > late_s:  # it goes on again, but had no processor yet
            state = "(?:is stopped|runs|sleeps)"
        # One of three nodes may know no more than that it is one of the two others.
        node = re.fullmatch(r"missing (?:the node of )?rank (\d+) \([^)]*\)(?: or (?:the node of )?rank (\d+) \([^)]*\))?, from which there is no message", what)
        here = re.fullmatch(rf"missing rank {rank} \(process \d+ {state}, last in call {call - 1}, .*\); (\d+) of (\d+) ranks of this node are there", what)
        alone = rank >= 0 and nodes.count(nodes[rank]) == 1
        if here and len(re.findall(r"rank \d+ \(process", what)) == 1 and int(here[1]) == int(here[2]) - 1:
            named.add(call)
        elif node and rank >= 0 and str(nodes.index(nodes[rank])) in node.groups():
            pairs += node[2] is not None
            if alone:
                named.add(call)
        else:
            wrong.append(line)
    missed = [call for call in late if call not in named]
    for call, (rank, how, kind) in late.items():
        kinds[kind] = kinds.get(kind, 0) + 1
        hows[how] = hows.get(how, 0) + 1
    sums = rows.setdefault((name.split(".")[0], ",".join(nodes)), [0, 0, 0, 0, 0])
    sums[:] = [a + b for a, b in zip(sums, (len(late), lines, len(missed), len(wrong), pairs))]
    for line in wrong[:5]:
        print("      " + line)
        print("      late there: " + str(late.get(int(re.search(r"call number (\d+)", line)[1]))))
    for call in missed[:5]:
        print(f"      call {call}: {late[call]}")
    ends = status == 0 or name.startswith("left")  # whoever waits for a rank that has left is ended by a signal
    if not ends or not late or missed or wrong:
        fail(f"{name} on nodes {','.join(nodes)}: exit status {status}")
        if not ends or not late:
            print(text[-1000:])
for (kind, nodes), sums in rows.items():
    print(f"{kind:5} {nodes:18}" + "".join(f" {n:6}" for n in sums))
print(f"{'all':24}" + "".join(f" {sum(n):6}" for n in zip(*rows.values())))
print("ranks were late by being " + ", ".join(f"{how}: {n}" for how, n in sorted(hows.items())))
print("kinds of calls: " + ", ".join(f"{kind}: {n}" for kind, n in sorted(kinds.items())))
print("#")
print("# node of each rank, calls that differ, lines that say so, exit status: 0 if all ranks got the error each time")
sums = [0, 0]
for job in range(jobs):
    nodes, status, text = read(f"calls.{job}")
    made = len(re.findall(r"note mistake", text))
    said = len(re.findall(r"do not call the same", text))
    print(f"{','.join(nodes):18} {made:6} {said:6} {status:6}")
    sums = [sums[0] + made, sums[1] + said]
    if status != 0 or said != made:
        fail(f"mistakes on nodes {','.join(nodes)}: exit status {status}")
        print(text[-1000:])
print(f"{'all':18} {sums[0]:6} {sums[1]:6}")
print(f"{bad} failures")
sys.exit(bad != 0)
PYTHON
