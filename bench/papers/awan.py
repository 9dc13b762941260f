#!/usr/bin/env python3
"""Awan et al., Scalable distributed DNN training using TensorFlow and CUDA-aware MPI (CCGRID 2019): how ResNet-50
scales to 64 GPUs, and what reducing on the GPU gains by size."""

import csv

import common

STEPS = 10  # in a recorded trace
CLUSTER = common.MACHINES / "awan64.cluster"


def calls_of(trace):
    """{bytes: calls} of the gradients in one step of a recorded training."""
    calls = {}
    with open(common.ROOT / "bench" / "traces" / trace, newline="") as file:
        for row in csv.DictReader(file):
            if (row["fn"], row["type"], row["op"], row["inplace"]) == ("Allreduce", "MPI_FLOAT", "SUM", "1"):
                calls[int(row["bytes"])] = calls.get(int(row["bytes"]), 0) + int(row["calls"]) / STEPS
    return calls


def print_scaling(build, small):
    figures = common.published()
    batches = [(batch, batch / figures[f"p100_batch_{batch}"]["value"] * 1e3) for batch in (64, 32)]
    common.section(
        "awan-scaling", "simulated Allreduce, published time of a step",
        ["awan_efficiency", "p100_batch_64", "p100_batch_32"],
        ["ours          the calls of a recorded training with Horovod, on awan64, one after the other; none overlaps",
         f"              with the step, which takes {batches[0][1]:.0f} ms (64 images) or {batches[1][1]:.0f} ms (32)",
         "host          hetcoll's algorithm of that name: copies to the hosts, their sum there, and copies back"])
    print(f"{'cycle':>5} {'calls/step':>10} {'GPUs':>5} {'ms/step':>8} {'host':>8}   "
          f"{'efficiency 64':>13} {'host':>6}   {'efficiency 32':>13} {'host':>6}")
    nodes = [2, 4] if small else [2, 4, 8, 16, 32, 64]
    for cycle, trace in (("1 ms", "horovod_resnet50_float.csv"), ("50 ms", "horovod_resnet50_float_50ms.csv")):
        calls = calls_of(trace)
        if small:
            calls = dict(sorted(calls.items())[-2:])
        times = common.simulate(build, CLUSTER, sorted(calls), ["auto", "host"], nodes)
        for gpus in nodes:
            ms = [sum(count * times[gpus, size, asked]["median_us"] for size, count in calls.items()) / 1e3
                  for asked in ("auto", "host")]
            line = f"{cycle:>5} {sum(calls.values()):10.1f} {gpus:5} {ms[0]:8.1f} {ms[1]:8.1f}"
            for _, step_ms in batches:
                line += f"   {step_ms / (step_ms + ms[0]):13.3f} {step_ms / (step_ms + ms[1]):6.3f}"
            print(line)


def print_sizes(build, small):
    common.section(
        "awan-sizes", "simulated", ["awan_small", "awan_medium", "awan_large"],
        ["ours          on awan64: what hetcoll chooses, and how many times faster it is than a ring of all GPUs",
         "              (NCCL2 before 2.4 had rings only) and than copies through the host"])
    nodes = [2, 4] if small else [16, 64]
    sizes = [8, 65536] if small else [8, 1024, 8192, 65536, 262144, *(mib * common.MIB for mib in (1, 4, 16, 64, 256))]
    times = common.simulate(build, CLUSTER, sizes, ["auto", "ring", "host"], nodes)
    print(f"{'GPUs':>4} {'bytes':>6} {'chosen':20} {'us':>10} {'over ring':>10} {'over host':>10}")
    for gpus in nodes:
        for size in sizes:
            chosen, ring, host = (times[gpus, size, asked] for asked in ("auto", "ring", "host"))
            us = chosen["median_us"]
            print(f"{gpus:4} {common.size_name(size):>6} {chosen['algorithm']:20} {us:10.1f} "
                  f"{ring['median_us'] / us:10.2f} {host['median_us'] / us:10.2f}")


def print_measured_elsewhere():
    common.section("awan-host", "measured by others", ["abci"])
    print(f"{'bytes':>6} {'Open MPI us':>12} {'NCCL us':>9} {'ratio':>7}")
    with open(common.HERE / "abci.csv", newline="") as file:
        for row in csv.DictReader(file):
            host, nccl = float(row["openmpi_us"]), float(row["nccl_us"])
            print(f"{common.size_name(int(row['bytes'])):>6} {host:12.1f} {nccl:9.1f} {host / nccl:7.2f}")


def main():
    arguments = common.options(__doc__)
    print_scaling(arguments.build, arguments.small)
    print_sizes(arguments.build, arguments.small)
    print_measured_elsewhere()


main()
