#!/bin/bash
# small_vectors.sh BUILD BASE_BUILD: how long vectors up to 1 MiB take on several nodes, by what hetcoll chooses without a
# table, over the same with the hetcoll_sim of another build folder. All of it is simulated by SimGrid: no machine was
# measured. A minute on one core. Writes a results file to stdout.
set -u
build=$(cd "${1:?small_vectors.sh BUILD BASE_BUILD}" && pwd) || exit 1
base=$(cd "${2:?small_vectors.sh BUILD BASE_BUILD}" && pwd) || exit 1
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/bench/job.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
sizes=8,64,512,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M
boxes=2,3,4,5,6,8 # a machine's own file describes one node

header
echo "# base          $(cd "$base" && git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
echo "# sizes         $sizes"
echo "# A line a machine and number of nodes: ranks, then for each size the time over the base's."
echo "#"
for machine in 4xp4000:$boxes 4xrtx2060:$boxes 4xtitanrtx:$boxes 4xtitanv:$boxes p100:$boxes v100-100gbe:$boxes \
    pcie8:$boxes dgx1p:$boxes dgx1v-014:$boxes dgx1v-034:$boxes dgx1v-0124:$boxes dgx1v-01234:$boxes dgx1v:$boxes \
    dgx2:2,3,4,8 dgxa100:$boxes dgxh100:$boxes awan64:8,12,16,24,32,48,64 dgx1vx128:16,32 dgxh100x512:16,24,32 \
    fragments:2 hetpipe:4 netreduce6:6 netreduce:16,32,64 oversubscribed:8,16,24; do
    name=${machine%:*}
    file=$here/topology/machines/$name.topology
    [ -f "$file" ] || file=${file%.topology}.cluster
    for which in base build; do
        "${!which}/hetcoll_sim" --topology "$file" --nodes "${machine#*:}" --bytes $sizes --json "$work/$which.json" \
            >/dev/null || exit 1
    done
    python3 - "$work" "$name" <<'PYTHON' || exit 1
import json, sys
work, name = sys.argv[1:]
def times(which):
    with open(f"{work}/{which}.json") as file:
        return {(run["nodes"], run["ranks"], run["bytes"]): run["median_us"] for run in json.load(file)["results"]}
new, old = times("build"), times("base")
with open(f"{work}/ratios", "a") as ratios:
    for nodes, ranks in sorted({case[:2] for case in new}):
        row = [new[case] / old[case] for case in sorted(new) if case[:2] == (nodes, ranks)]
        print(f"{name:12} {nodes:3} {ranks:4} " + "".join(f" {ratio:.3f}" for ratio in row), flush=True)
        ratios.writelines(f"{ratio}\n" for ratio in row)
PYTHON
done
awk '{ faster += $1 < 0.995; slower += $1 > 1.005; least = NR == 1 || $1 < least ? $1 : least; most = $1 > most ? $1 : most }
    END { printf "%d cases, %d faster and %d slower by more than 0.5 %%, from %.3f to %.3f\n", NR, faster, slower, least, most }' "$work/ratios"
