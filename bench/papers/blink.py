#!/usr/bin/env python3
"""Wang et al., Blink (MLSys 2020): allreduce over packed trees against rings, on whatever GPUs of a DGX-1 a job
gets."""

import pathlib
import re
import tempfile

import common

SIZE = 256 * common.MIB
MACHINES = {  # topology, GB/s of an NVLink by list, and as the paper has it
    "DGX-1P": ("dgx1p.topology", 20, "blink_nvlink_p100"),
    "DGX-1V": ("dgx1v.topology", 25, "blink_nvlink_v100"),
}


def classes(build):
    """One dict a class of GPUs, of what bench/dgx1_classes prints: NVLink's numbers in units of one NVLink."""
    for line in common.run(build / "bench" / "dgx1_classes").splitlines():
        if not line.startswith("#"):
            machine, gpus, _, bound, trees, rings, in_rings = line.split()
            yield {"machine": machine, "gpus": gpus, "bound": float(bound), "trees": float(trees),
                   "rings": int(rings), "in_rings": float(in_rings)}


def by_arithmetic(one, link, pcie):
    """Rates of an allreduce in GB/s, long vectors. A ring over PCIe sends 2 (n - 1) / n vectors one way."""
    ranks = len(one["gpus"])
    over_pcie = pcie * ranks / (2 * (ranks - 1))
    return {"bound": one["bound"] * link, "trees": one["trees"] * link,
            "rings": one["in_rings"] * link if one["rings"] else over_pcie}


def by_simulation(build, one, link, without_nvlinks):
    """GB/s at 256 MiB of what hetcoll chooses, its ring, and rings: NVLinks' by arithmetic, else PCIe's simulated."""
    def rates(topology, *algorithms):
        results = common.simulate(build, f"{topology}:{','.join(one['gpus'])}", [SIZE], algorithms)
        return [results[1, SIZE, asked] for asked in algorithms]

    chosen, ring = rates(common.MACHINES / MACHINES[one["machine"]][0], "auto", "ring")
    over_pcie, = rates(without_nvlinks, "ring")
    rings = one["in_rings"] * link if one["rings"] else over_pcie["algbw_gbs"]
    return {"algorithm": chosen["algorithm"], "chosen": chosen["algbw_gbs"], "own_ring": ring["algbw_gbs"],
            "rings": rings}


def print_classes(build, small, folder):
    common.section(
        "blink-classes", "arithmetic, and simulated", ["blink_pcie", "blink_nvlink_p100", "blink_nvlink_v100"],
        ["arithmetic    GB/s of the vector at these rates: the bound of NVLinks, trees that hetcoll packs, rings.",
         "              Rings are as many as fit through NVLinks, or else one over PCIe",
         "simulated     256 MiB at list speeds (20 and 25 GB/s, PCIe 12, between sockets 9.6): what hetcoll",
         "              chooses, its ring, and rings: through NVLinks by arithmetic without overhead, or else over",
         "              PCIe, simulated"])
    print(f"{'machine':8} {'GPUs':9} {'NVLink rings':>12} | {'bound':>6} {'trees':>6} {'rings':>6} {'gain':>5} | "
          f"{'chosen':9} {'GB/s':>6} {'ring':>6} {'rings':>6} {'gain':>5}")
    pcie = common.published()["blink_pcie"]["value"]
    rows = []
    for one in list(classes(build))[:: 15 if small else 1]:
        topology, list_speed, paper_speed = MACHINES[one["machine"]]
        without_nvlinks = folder / topology
        text = (common.MACHINES / topology).read_text()
        without_nvlinks.write_text(re.sub(r"^link .* nvlink .*\n", "", text, flags=re.MULTILINE))
        exact = by_arithmetic(one, common.published()[paper_speed]["value"], pcie)
        simulated = by_simulation(build, one, list_speed, without_nvlinks)
        rows.append({**one, "exact_gain": exact["trees"] / exact["rings"], "most_gain": exact["bound"] / exact["rings"],
                     "gain": simulated["chosen"] / simulated["rings"]})
        print(f"{one['machine']:8} {one['gpus']:9} {one['rings']:12} | {exact['bound']:6.1f} {exact['trees']:6.1f} "
              f"{exact['rings']:6.1f} {rows[-1]['exact_gain']:5.2f} | {simulated['algorithm']:9} "
              f"{simulated['chosen']:6.1f} {simulated['own_ring']:6.1f} {simulated['rings']:6.1f} "
              f"{rows[-1]['gain']:5.2f}")
    return rows


def print_summary(rows):
    common.section(
        "blink-gains", "summary of blink-classes", ["blink_sync"],
        ["ours          geometric mean and most, over rings, of classes that have NVLink rings or none"])
    print(f"{'machine':8} {'NVLink rings':12} {'classes':>7}   {'bound':>6} {'most':>6}   {'trees':>6} {'most':>6}   "
          f"{'simulated':>9} {'most':>6}")
    for machine in MACHINES:
        for name, wanted in (("none", [False]), ("some", [True]), ("all classes", [False, True])):
            chosen = [row for row in rows if row["machine"] == machine and (row["rings"] > 0) in wanted]
            if chosen:
                line = f"{machine:8} {name:12} {len(chosen):7}"
                for key, width in (("most_gain", 6), ("exact_gain", 6), ("gain", 9)):
                    gains = [row[key] for row in chosen]
                    line += f"   {common.geometric_mean(gains):{width}.2f} {max(gains):6.2f}"
                print(line)


def print_servers(build, small):
    common.section(
        "blink-servers", "simulated", [],
        ["published     we have not read the paper's figures for 3 + 5 GPUs of two servers",
         "ours          3 + 5 GPUs of two DGX-1V (fragments), 8 adapters of 100 Gb/s: chosen over a ring of all GPUs"])
    print(f"{'bytes':>6} {'chosen':14} {'ms':>8} {'ring ms':>8} {'gain':>6} {'bound ms':>9}")
    for size in [common.MIB] if small else [common.MIB, 64 * common.MIB, 256 * common.MIB]:
        times = common.simulate(build, common.MACHINES / "fragments.cluster", [size], ["auto", "ring"])
        chosen, ring = times[2, size, "auto"], times[2, size, "ring"]
        print(f"{common.size_name(size):>6} {chosen['algorithm']:14} {chosen['median_us'] / 1e3:8.2f} "
              f"{ring['median_us'] / 1e3:8.2f} {ring['median_us'] / chosen['median_us']:6.2f} "
              f"{chosen['bound_us'] / 1e3:9.2f}")


def main():
    arguments = common.options(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        print_summary(print_classes(arguments.build, arguments.small, pathlib.Path(folder)))
    print_servers(arguments.build, arguments.small)


main()
