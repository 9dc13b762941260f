#!/usr/bin/env python3
"""Park et al., HetPipe (USENIX ATC 2020): groups of unequal GPUs that are equally fast together, and waves."""

import re

import common


def print_placement(build):
    common.section(
        "hetpipe-placement", "arithmetic, speeds of the GPUs made up", ["hetpipe_converges"],
        ["published     we have not read the paper's table of allocations",
         "ours          hetcoll_place examples/placement/vrgq.json: samples a second with equal batches, over data",
         "              parallelism (DP), and MB between nodes"])
    print(f"{'allocation':10} {'samples/s':>9} {'over DP':>7} {'loss':>6} {'sync MB':>8} {'pipeline MB':>11}")
    rows = {}
    text = common.run(build / "hetcoll_place", common.ROOT / "examples" / "placement" / "vrgq.json")
    for line in text.splitlines():
        words = re.match(r"(\S+) +\d+ x \d+ +(\S+) +\S+ +\S+ +(\S+) +(\S+) +(\S+)$", line)
        if words:
            rows[words[1]] = (float(words[2]), *words.groups()[2:])
    for name, (rate, loss, sync, pipeline) in rows.items():
        print(f"{name:10} {rate:9.1f} {rate / rows['DP'][0]:7.2f} {loss:>6} {sync:>8} {pipeline:>11}")


def print_sync(build, small):
    common.section(
        "hetpipe-allreduce", "simulated", [],
        ["ours          Allreduce of a whole model between the 16 GPUs (hetpipe), which ED-local does not need between",
         "              nodes: what hetcoll chooses, and copies through the host"])
    size = (1 if small else 548) * 1000 * 1000
    times = common.simulate(build, common.MACHINES / "hetpipe.cluster", [size], ["auto", "host"])
    print(f"{'MB':>5} {'chosen':14} {'ms':>8} {'host ms':>8}")
    chosen = times[4, size, "auto"]
    print(f"{size // 10**6:5} {chosen['algorithm']:14} {chosen['median_us'] / 1e3:8.1f} "
          f"{times[4, size, 'host']['median_us'] / 1e3:8.1f}")


def print_waves():
    common.section(
        "hetpipe-waves", "measured on processors, steps that sleep", [],
        ["ours          how many times faster a wave is than with distance 0, which is synchronous: libhetcoll_wsp, 4",
         "              ranks (bench/results/wsp.txt); sigma: of the steps' log-normal times; slow: one rank's steps"])
    print(f"{'sigma':>5} {'slow':>5} {'progress':8}   " + " ".join(f"{'D = ' + str(d):>6}" for d in (0, 1, 2, 4, 8)))
    for block in (common.ROOT / "bench" / "results" / "wsp.txt").read_text().split("# sigma ")[1:]:
        facts = re.match(r"(\S+), the last rank takes (\S+) times as long, progress_us (\d+)", block)
        sigma, slow, progress = facts.groups()
        faster = [line.split()[4] for line in block.splitlines() if re.match(r" +\d+ +\d", line)]
        print(f"{sigma:>5} {slow:>5} {'yes' if int(progress) else 'no':8}   " + " ".join(f"{one:>6}" for one in faster))


def main():
    arguments = common.options(__doc__)
    print_placement(arguments.build)
    print_sync(arguments.build, arguments.small)
    print_waves()


main()
