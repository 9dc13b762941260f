#!/bin/bash
# choice_sweep.sh [BUILD [SET...]]: what hetcoll chooses without a table, over the fastest algorithm, by SimGrid, on
# machines that the prices were made with (tuned) and on others (other, random). Nothing of it was measured on a GPU.
# Half an hour on one core. Writes a results file to stdout. A line names each size that takes longer than a larger one,
# and each that takes more than 2.2 times as long as half of it.
set -u
build=$(cd "${1:-${HETCOLL_BUILDDIR:-.}}" && pwd) || exit 1
shift
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/bench/job.sh"
machines=$here/topology/machines
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
sizes=8,64,512,4K,8K,16K,20K,64K,128K,256K,512K,1M,2M,4M,16M,32M,64M,256M,1G

# Names and numbers of nodes; 0: as the file says.
tuned='4xp4000 1  4xrtx2060 1  4xtitanrtx 1  4xtitanv 1  dgx1p 1  dgx1v 1  dgx1v-01234 1  dgx1v-0124 1  dgx1v-014 1
    dgx1v-034 1  dgx2 1  dgxa100 1  dgxh100 1  pcie8 1  dgx1v 2  pcie8 2  dgxh100 2  fragments 0  hetpipe 0
    netreduce6 0  awan64 16  awan64 0'
other='dgx1v:0,1 1  dgx1v:0,3,4,7 1  dgx1v:0,1,2,3,4,5 1  dgx1v:0,1,2,3,5,6,7 1  dgx1p:0,1,2 1  dgx1p:0,1,4,5,6 1
    pcie8:0,1,2,3 1  pcie8:0,1,4,5,6 1  dgx2:0,1,2,3,8,9 1  dgxa100:0,1,2 1  dgx1p 2  dgxa100 2  dgxa100 3  dgx1v 3
    dgx1v 5  dgx1v:0,1,2,3 4  4xtitanv 4  4xp4000 3  p100 2  p100 5  v100-100gbe 12  awan64 24  awan64 48  adapters4 2
    adapters16 2  mixed 0  netreduce 64'

# Made here: a node with 4 or 16 adapters, nodes of two kinds, and graphs of GPUs, processors, switches and NVLinks.
cp "$machines"/*.topology "$work"
python3 - "$work" <<'PYTHON' || exit 1
import random, sys
folder = sys.argv[1]

def node(name, gpus, cpus, adapters, gbps, nvlinks):
    lines = ["hetcoll topology 1", f"machine {name}"]
    lines += [f"gpu gpu{i} - numa {i * cpus // gpus}" for i in range(gpus)] + [f"cpu cpu{i} numa {i}" for i in range(cpus)]
    lines += [f"nic nic{i} - numa {i * cpus // adapters}" for i in range(adapters)] + ["network net0"]
    lines += [f"link gpu{i} cpu{i * cpus // gpus} pcie 1 12" for i in range(gpus)]
    lines += [f"link nic{i} cpu{i * cpus // adapters} pcie 1 12" for i in range(adapters)]
    lines += [f"link nic{i} net0 network 1 {gbps}" for i in range(adapters)]
    lines += [f"link cpu{i} cpu{i + 1} socket 1 9.6" for i in range(cpus - 1)]
    lines += [f"link gpu{a} gpu{b} nvlink {n} 25" for a, b, n in nvlinks]
    open(f"{folder}/{name}.topology", "w").write("\n".join(lines) + "\n")

for adapters in 4, 16:
    node(f"adapters{adapters}", 8, 2, adapters, 11.8, [(a, b, 1) for a in range(8) for b in range(a)])
open(f"{folder}/mixed.cluster", "w").write(
    "hetcoll cluster 1\nname mixed nodes\nnodes 2 dgx1v\nnodes 2 p100\nnodes 1 4xtitanv\nnetwork latency 2\n")
random.seed(16)
for number in range(6):
    gpus = random.randint(3, 8)
    pairs = [(a, b, random.randint(1, 2)) for a in range(gpus) for b in range(a) if random.random() < 0.5]
    node(f"random{number}", gpus, random.randint(1, 2), random.randint(1, 4), random.choice([5.9, 11.8, 23.6]), pairs)
PYTHON
random='random0 1  random1 1  random2 1  random3 1  random4 1  random5 1  random0 2  random1 3  random2 4'

header
echo "# sizes         $sizes"
echo "# A line a machine: ranks, cases, then of what hetcoll chooses: worst time over the fastest algorithm's, and how many"
echo "# cases are more than 5 and 10 % over it; least and most of price over time, of all algorithms."
echo "#"
failures=0
for set in ${*:-tuned other random}; do
    echo "# $set"
    read -r -d '' -a words <<<"${!set}"
    for ((i = 0; i < ${#words[@]}; i += 2)); do
        name=${words[i]} nodes=${words[i + 1]}
        file=$machines/${name%%:*}.cluster
        [ -f "$file" ] || file=$work/${name%%:*}.cluster
        [ -f "$file" ] || file=$work/${name%%:*}.topology
        case $name in *:*) file=$file:${name#*:} ;; esac
        for what in all auto; do
            # shellcheck disable=SC2046
            "$build/hetcoll_sim" --topology "$file" $([ "$nodes" = 0 ] || echo --nodes "$nodes") --bytes "$sizes" \
                --algorithm $what --json "$work/$what.json" >/dev/null || failures=$((failures + 1))
        done
        python3 - "$work" "$set" "$name x $nodes" <<'PYTHON' || failures=$((failures + 1))
import json, sys
work, which, name = sys.argv[1:]
runs = [r for r in json.load(open(f"{work}/all.json"))["results"] if r["algorithm"] != "ordered"]
chosen = {r["bytes"]: r["median_us"] for r in json.load(open(f"{work}/auto.json"))["results"]}
ratios = []
for size in sorted(chosen):
    best = min(r["median_us"] for r in runs if r["bytes"] == size)
    ratios.append(chosen[size] / min(best, chosen[size]))
far, farther = sum(r > 1.05 for r in ratios), sum(r > 1.10 for r in ratios)
for small in sorted(chosen):
    for large in sorted(chosen):
        if large > small and chosen[large] < 0.999 * chosen[small]:
            print(f"# {name}: {large} bytes take {chosen[large]:.1f} us, {small} take {chosen[small]:.1f}")
    if chosen.get(2 * small, 0) > 2.2 * chosen[small]:
        print(f"# {name}: {2 * small} bytes take {chosen[2 * small] / chosen[small]:.2f} times as long as half of it")
over = [r["model_us"] / r["median_us"] for r in runs]
print(f"{name:24} {runs[0]['ranks']:4} {len(ratios):3}  {max(ratios):6.3f} {far:3} {farther:3}  {min(over):5.2f} {max(over):5.2f}")
with open(f"{work}/cases", "a") as cases:
    cases.writelines(f"{which} {ratio}\n" for ratio in ratios)
PYTHON
    done
done
awk '{ ++n[$1]; worst[$1] = $2 > worst[$1] ? $2 : worst[$1]; close_[$1] += $2 <= 1.05 }
    END { for (s in n) printf "%s: %d cases, worst %.3f, %.1f %% at most 1.05\n", s, n[s], worst[s], 100 * close_[s] / n[s] }' \
    "$work/cases"
echo "$failures failures"
exit $((failures > 0))
