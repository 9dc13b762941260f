#!/usr/bin/env python3
"""Liu et al., In-network aggregation with transport transparency for distributed training (NetReduce, ASPLOS 2023):
switches that reduce, against rings, and the window of messages in flight."""

import common

SIZE = 100 * common.MIB
MESSAGE = 170 * 1024


def cluster_of(servers):
    return common.MACHINES / ("netreduce6.cluster" if servers == 6 else "netreduce.cluster")


def print_servers(build, small):
    common.section(
        "netreduce-servers", "simulated", ["netreduce_cnn", "netreduce_transformer", "netreduce_alexnet"],
        [f"ours          Allreduce of {common.size_name(SIZE)} alone, ms, 100 Gb/s; one switch, from 64 servers on racks",
         "              of 16; 8 messages of 170 KiB in flight; limit: 2 (n - 1) / n, by the bytes that a server sends"])
    print(f"{'servers':>7} {'in network':>10} {'ring':>8} {'rabenseifner':>12}   {'over ring':>9} "
          f"{'over rabenseifner':>17} {'limit':>6}")
    for servers in [6] if small else [6, 16, 64, 512]:
        names = ["in_network", "ring", "rabenseifner"]
        if servers > 256:
            names.remove("ring")  # a message for each rank, one after the other: minutes of simulation
        times = common.simulate(build, cluster_of(servers), [SIZE], names, [servers], ["--window", 8])
        us = {name: times[servers, SIZE, name]["median_us"] for name in names}
        ms = [f"{us[name] / 1e3:.2f}" if name in us else "-" for name in ("in_network", "ring", "rabenseifner")]
        gains = [f"{us[name] / us['in_network']:.2f}" if name in us else "-" for name in ("ring", "rabenseifner")]
        print(f"{servers:7} {ms[0]:>10} {ms[1]:>8} {ms[2]:>12}   {gains[0]:>9} {gains[1]:>17} "
              f"{2 * (servers - 1) / servers:6.2f}")


def print_windows(build, small):
    common.section(
        "netreduce-window", "simulated", ["netreduce_window"],
        [f"ours          ms of {common.size_name(SIZE)} by messages of 170 KiB in flight; bound: without a window"])
    windows = [1, 2] if small else [1, 2, 4, 8]
    print(f"{'servers':>7}" + "".join(f" {'window ' + str(window):>9}" for window in windows) + f" {'bound':>7}")
    for servers in [6] if small else [6, 64]:
        line, bound = f"{servers:7}", 0
        for window in windows:
            times = common.simulate(build, cluster_of(servers), [SIZE], ["in_network"], [servers],
                                    ["--message", MESSAGE, "--window", window])
            line += f" {times[servers, SIZE, 'in_network']['median_us'] / 1e3:9.2f}"
            bound = times[servers, SIZE, "in_network"]["bound_us"]
        print(f"{line} {bound / 1e3:7.2f}")


def print_server():
    common.section(
        "netreduce-aggregator", "measured on processors, links of 50 Mb/s", [],
        ["ours          hetcoll_aggregator over a ring, ranks with a link each (bench/results/aggregator.txt)"])
    print(f"{'ranks':>5} {'MiB':>4} {'aggregator s':>12} {'ring s':>7} {'gain':>5} {'limit':>6}  call")
    for line in (common.ROOT / "bench" / "results" / "aggregator.txt").read_text().splitlines():
        words = line.split(maxsplit=5)
        if line.startswith(" ") and len(words) == 6:
            ranks = int(words[0])
            call = words[5] if words[5].startswith("MPI") else "aggregator alone"
            print(f"{ranks:5} {words[1]:>4} {words[2]:>12} {words[3]:>7} {words[4]:>5} {2 * (ranks - 1) / ranks:6.2f}  "
                  f"{call}")


def main():
    arguments = common.options(__doc__)
    print_servers(arguments.build, arguments.small)
    print_windows(arguments.build, arguments.small)
    print_server()


main()
