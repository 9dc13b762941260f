#!/usr/bin/env python3
"""Draws what hetcoll_tune measured: time and bus bandwidth over size for every algorithm, what the tuning
table chooses as the lower envelope, and what the model predicts for it. Writes PREFIX.png and PREFIX.svg.

    hetcoll_tune --output table.json
    bench/plot.py table.MACHINE.measurements --table table.json --output picture

    hetcoll_sim --topology dgxh100x512 --nodes 1,8,64,512 --bytes 8,64M --algorithm all --json sim.json
    bench/plot.py --scaling sim.json --output picture

draws the time over the number of ranks for every size that was simulated, and the lower bound. Hollow markers are
closed forms, not simulated.

Needs matplotlib: the Debian package python3-matplotlib, or pip install matplotlib."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

# One colour and one marker an algorithm, in every picture: all of base/algorithm_list.h, which tools/hetcoll_tune_test.sh
# compares. The colours are those of hetcoll_info page.
STYLES = {
    "recursive_doubling": ("#7b4fa6", "v"),
    "recursive_multiplying": ("#a0568f", "1"),
    "rabenseifner": ("#7d4a3d", "^"),
    "radix3": ("#a3622a", "3"),
    "radix4": ("#b58900", "4"),
    "radix8": ("#8a8a1f", "8"),
    "ring": ("#1f6fb4", "o"),
    "one_shot": ("#c4519f", "P"),
    "two_shot": ("#c62828", "s"),
    "leader": ("#d9730d", "D"),
    "tree": ("#2e8b3d", "X"),
    "hierarchical": ("#128a99", "h"),
    "host": ("#6b6b6b", "<"),
    "copy_in": ("#55812a", ">"),
    "ordered": ("#303030", "d"),
    "in_network": ("#393b9a", "*"),
    "weighted": ("#4b6b1f", "p"),
}
UNKNOWN_STYLE = ("#59636e", "x")  # of an algorithm that a newer hetcoll has measured
PANELS_LEFT, PANELS_RIGHT = 0.075, 0.78  # beside them the legend
PANELS_MIDDLE = (PANELS_LEFT + PANELS_RIGHT) / 2
SETUP_FIELDS = ("ranks", "nodes", "ranks_per_node_min", "ranks_per_node_max", "ranks_per_gpu", "element_bytes")


def fail(text):
    sys.exit(f"plot.py: {text}")


def read_measurements(path):
    """{setup: {algorithm: {bytes: [median of each repetition]}}}, and the machine's facts."""
    setups, facts, columns = {}, {}, None
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except (OSError, UnicodeError) as problem:
        fail(f"{path} cannot be read ({getattr(problem, 'strerror', None) or 'it is not text'})")
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words or words[0] == "hetcoll":
            continue
        if words[0] in ("machine", "fact") and len(words) > 1:
            key, value = ("machine", words[1]) if words[0] == "machine" else (words[1], " ".join(words[2:]))
            facts[key] = value
        elif words[0] == "columns":
            columns = words[1:]
        elif columns is None or len(words) != len(columns):
            fail(f"{path}:{number}: not a line of measurements as hetcoll_tune writes them")
        else:
            row = dict(zip(columns, words))
            try:
                if row["chunk_bytes"] != "0" or row["between_nodes"] != "-":
                    continue  # variants of an algorithm: the picture shows one of each
                setup = tuple(int(row[field]) for field in SETUP_FIELDS)
                size, median_us = int(row["bytes"]), float(row["median_us"])
            except (KeyError, ValueError) as problem:
                fail(f"{path}:{number}: not a line of measurements as hetcoll_tune writes them ({problem})")
            curve = setups.setdefault(setup, {}).setdefault(row["algorithm"], {})
            curve.setdefault(size, []).append(median_us)
    if not setups:
        fail(f"{path} holds no measurement")
    return setups, facts


def pick_setup(setups, ranks, nodes):
    fitting = [s for s in setups if ranks in (None, s[0]) and nodes in (None, s[1])]
    if not fitting:
        there = ", ".join(f"{s[0]} ranks on {s[1]} nodes" for s in sorted(setups))
        fail(f"nothing measured for these --ranks and --nodes, there is: {there}")
    return max(fitting)


def table_rules(path, machine, setup):
    """The size rules of the first list that fits the setup, as tuning/table.h finds them."""
    if path is None:
        return []
    try:
        table = json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as problem:
        fail(f"{path} cannot be used ({problem})")
    keys = ("comm_size", "nodes", "ranks_per_node", "ranks_per_node", "ranks_per_gpu", "element_size")
    values = dict(zip(keys, setup))
    infinite = float("inf")

    def limit(rules, key, otherwise):
        value = rules.get(key, otherwise)
        return infinite if value == "inf" else value

    try:
        for rules in table["collectives"]["allreduce"]:
            fits = rules.get("machine", machine) == machine and rules.get("memory", "device") == "device"
            for key, value in values.items():
                fits = fits and limit(rules, key + "_min", 0) <= value <= limit(rules, key + "_max", infinite)
            if fits:
                return [(limit(r, "msg_size_min", 0), limit(r, "msg_size_max", infinite), r["alg"])
                        for r in rules["rules"]]
    except (AttributeError, KeyError, TypeError) as problem:
        fail(f"{path} is not a tuning table ({problem}): hetcoll_info explain --table says more")
    fail(f"{path} has no rules for {setup[0]} ranks on {setup[1]} nodes of {machine}")


def chosen(rules, size):
    return next((alg for first, last, alg in rules if first <= size <= last), None)


def scaled_topology(path, scale, folder):
    """The topology with all rates times `scale`, as EMU_LINK_SCALE makes them."""
    name, colon, gpus = path.rpartition(":")
    name = name if colon else path
    try:
        text = pathlib.Path(name).read_text()
    except OSError as problem:
        fail(f"{name} cannot be read ({problem.strerror}): --link-scale needs the path of a topology file")

    def slower(match):
        return f"{match.group(1)}{float(match.group(2)) * scale:g}"

    text = re.sub(r"^(link\s+\S+\s+\S+\s+\S+\s+\S+\s+)(\S+)", slower, text, flags=re.M)
    file = pathlib.Path(folder) / "scaled.topology"
    file.write_text(text)
    return str(file) + (colon + gpus if colon else "")


def model_times(arguments, setup, curves):
    """{algorithm: {bytes: us}} as hetcoll_info explain predicts it, of the algorithms and sizes of the curves."""
    sizes = sorted({size for curve in curves.values() for size in curve})
    times = {}
    if arguments.topology is None:
        return times
    with tempfile.TemporaryDirectory() as folder:
        topology = arguments.topology
        if arguments.link_scale != 1:
            topology = scaled_topology(topology, arguments.link_scale, folder)
        for size in sizes:
            command = [arguments.hetcoll_info, "explain", "--topology", topology, "--bytes", str(size),
                       "--ranks", str(setup[0]), "--nodes", str(setup[1]), "--ranks-per-gpu", str(setup[4])]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as problem:
                fail(f"{arguments.hetcoll_info} cannot be started ({problem.strerror}): give --hetcoll-info")
            if done.returncode != 0:
                fail(f"the model says nothing: {done.stderr.strip()}")
            for line in done.stdout.splitlines():
                words = line.split()
                if len(words) >= 2 and words[0] in curves and re.fullmatch(r"[0-9.]+", words[1]):
                    times.setdefault(words[0], {})[size] = float(words[1])
    return times


def size_name(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def styles_of(names):
    """{name: (colour, marker)} of all the names, those of STYLES first and in its order."""
    known = {name: style for name, style in STYLES.items() if name in names}
    return known | {name: UNKNOWN_STYLE for name in sorted(set(names) - set(known))}


def draw_curves(axes, curves, value):
    for name, (colour, marker) in styles_of(curves).items():
        sizes = sorted(curves[name])
        middle = [value(size, statistics.median(curves[name][size])) for size in sizes]
        low = [value(size, min(curves[name][size])) for size in sizes]
        high = [value(size, max(curves[name][size])) for size in sizes]
        axes.plot(sizes, middle, color=colour, marker=marker, markersize=4, linewidth=1.2, label=name, zorder=3)
        axes.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0, zorder=1)


def draw_choice(axes, curves, rules, value):
    sizes = [s for s in sorted({s for c in curves.values() for s in c}) if s in curves.get(chosen(rules, s), {})]
    times = [value(s, statistics.median(curves[chosen(rules, s)][s])) for s in sizes]
    axes.plot(sizes, times, color="black", alpha=0.18, linewidth=9, solid_capstyle="round", zorder=2,
              label="the table's choice")
    for _, last, _ in rules:
        if last != float("inf") and sizes and last <= sizes[-1]:
            axes.axvline(last, color="black", alpha=0.35, linewidth=0.8, linestyle=":")


def draw_model(axes, model, rules, value):
    sizes = sorted({size for curve in model.values() for size in curve})
    points = []
    for size in sizes:
        name = chosen(rules, size) or min((n for n in model if size in model[n]), key=lambda n: model[n][size])
        if size in model.get(name, {}):
            points.append((size, value(size, model[name][size])))
    if points:
        axes.plot(*zip(*points), color="black", linewidth=1.2, linestyle="--", zorder=4, label="model of that choice")


def draw(arguments, setup, curves, facts, rules, model):
    pyplot = load_pyplot()
    from matplotlib.ticker import FuncFormatter

    ranks = setup[0]
    panels = (("time of a call, µs", lambda size, us: us, "log"),
              ("bus bandwidth, GB/s", lambda size, us: 2 * (ranks - 1) / ranks * size / us / 1e3, "linear"))
    figure, both = pyplot.subplots(1, 2, figsize=(12, 4.6))
    for axes, (label, value, scale) in zip(both, panels):
        if rules:
            draw_choice(axes, curves, rules, value)
        draw_curves(axes, curves, value)
        draw_model(axes, model, rules, value)
        axes.set_xscale("log", base=2)
        axes.set_yscale(scale)
        axes.set_ylabel(label)
        axes.set_xlabel("size of the vector")
        axes.set_xticks(sorted({size for curve in curves.values() for size in curve})[::3])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: size_name(x)))
        axes.tick_params(axis="x", rotation=35)
        axes.grid(True, which="major", color="0.9")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    nodes = "one node" if setup[1] == 1 else f"{setup[1]} nodes"
    sharing = "" if setup[4] == 1 else f", {setup[4]} on a GPU"
    title = arguments.title or f"{facts.get('machine', '')}: {ranks} ranks on {nodes}{sharing}"
    figure.suptitle(title, x=PANELS_MIDDLE, y=0.985, fontsize=13)
    emulated = facts.get("driver") == "emulated"
    label = arguments.label or ("emulated GPU: not GPU speed" if emulated else "")
    figure.text(PANELS_MIDDLE, 0.895, label, ha="center", color="firebrick")
    handles, names = both[0].get_legend_handles_labels()
    figure.subplots_adjust(left=PANELS_LEFT, right=PANELS_RIGHT, bottom=0.21, top=0.86, wspace=0.24)
    figure.legend(handles, names, loc="center left", bbox_to_anchor=(PANELS_RIGHT + 0.01, 0.53), frameon=False)
    save(figure, arguments.output)


def load_pyplot():
    try:
        import matplotlib
    except ImportError:
        fail("matplotlib is not installed: the Debian package python3-matplotlib, or pip install matplotlib")
    matplotlib.use("Agg")
    # The same measurements give the same picture.
    matplotlib.rcParams.update({"svg.hashsalt": "hetcoll", "font.size": 11, "axes.axisbelow": True})
    from matplotlib import pyplot

    return pyplot


def save(figure, output):
    try:
        figure.savefig(output + ".png", dpi=110)
        figure.savefig(output + ".svg", metadata={"Date": None})
    except OSError as problem:
        fail(f"{output}.png and .svg cannot be written ({problem.strerror})")


RESULT_FIELDS = ("bytes", "ranks", "median_us", "bound_us", "algorithm", "asked", "path")


def read_simulated(paths):
    """The results of all files, and their clusters."""
    results, clusters = [], []
    for path in paths:
        try:
            simulated = json.loads(pathlib.Path(path).read_text())
            results += [{field: result[field] for field in RESULT_FIELDS} for result in simulated["results"]]
            clusters.append(str(simulated["cluster"]))
        except (OSError, ValueError) as problem:
            fail(f"{path} cannot be used ({problem})")
        except (KeyError, TypeError) as problem:
            fail(f"{path} is not what hetcoll_sim --json writes ({problem})")
    return results, clusters


def draw_scaling(arguments):
    """Time over ranks from hetcoll_sim's JSON, a panel a size."""
    results, clusters = read_simulated(arguments.scaling)
    pyplot = load_pyplot()
    sizes = sorted({result["bytes"] for result in results})
    if not sizes:
        fail("nothing was simulated")
    width = 3.4 * len(sizes) + 2.6
    figure, panels = pyplot.subplots(1, len(sizes), figsize=(width, 4.6), squeeze=False)
    for axes, size in zip(panels[0], sizes):
        here = [result for result in results if result["bytes"] == size]
        for name, (colour, marker) in styles_of({result["algorithm"] for result in here}).items():
            rows = sorted((r["ranks"], r["median_us"], r["path"] == "closed form") for r in here
                          if r["algorithm"] == name and r["asked"] != "auto")
            points = [row[:2] for row in rows if not row[2]]
            if points:
                axes.plot(*zip(*points), color=colour, marker=marker, markersize=4, linewidth=1.2, label=name)
            closed = points[-1:] + [row[:2] for row in rows if row[2]]  # goes on where the simulation ends
            if len(closed) > 1:
                axes.plot(*zip(*closed), color=colour, linestyle=":", linewidth=1.2)
                axes.plot(*zip(*closed[1:]), color=colour, marker=marker, markersize=4, markerfacecolor="white")
        points = sorted((r["ranks"], r["median_us"]) for r in here if r["asked"] == "auto")
        if points:
            axes.plot(*zip(*points), color="black", alpha=0.18, linewidth=9, solid_capstyle="round", zorder=1,
                      label="what hetcoll chooses")
        bounds = sorted({(r["ranks"], r["bound_us"]) for r in here if r["algorithm"] != "in_network"})
        axes.plot(*zip(*bounds), color="black", linestyle="--", linewidth=1, label="lower bound")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(size_name(size), fontsize=11)
        axes.set_xlabel("ranks, one a GPU")
        axes.set_xticks(sorted({result["ranks"] for result in here}))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axes.set_xticks([], minor=True)
        axes.grid(True, which="major", color="0.9")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0][0].set_ylabel("time of a call, µs")
    left, right = 0.85 / width, 1 - 2.5 / width  # of the panels
    figure.suptitle(arguments.title or ", ".join(dict.fromkeys(clusters)), x=(left + right) / 2, y=0.985, fontsize=13)
    figure.text((left + right) / 2, 0.895, arguments.label or "simulated: times of a model, not measured", ha="center",
                color="firebrick")
    by_name = {}
    for axes in panels[0]:
        for handle, name in zip(*axes.get_legend_handles_labels()):
            by_name.setdefault(name, handle)
    figure.subplots_adjust(left=left, right=right, bottom=0.14, top=0.81, wspace=0.25)
    figure.legend(by_name.values(), by_name.keys(), loc="center left", bbox_to_anchor=(right + 0.1 / width, 0.5),
                  frameon=False)
    save(figure, arguments.output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", nargs="?", help="the file beside the table")
    parser.add_argument("--scaling", nargs="+", metavar="JSON", help="draw time over ranks from hetcoll_sim's JSON")
    parser.add_argument("--table", help="draw what this table chooses")
    parser.add_argument("--ranks", type=int, help="default: the most that were measured")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--topology", help="draw what the model predicts for nodes like this, FILE[:GPUS]")
    parser.add_argument("--link-scale", type=float, default=1, help="all rates of --topology times this")
    parser.add_argument("--hetcoll-info", default="hetcoll_info", help="the program to ask for the model")
    parser.add_argument("--title")
    parser.add_argument("--label", help="a line in red under the title")
    parser.add_argument("--output", default="hetcoll", help="PREFIX of PREFIX.png and PREFIX.svg")
    arguments = parser.parse_args()
    if not 0 < arguments.link_scale < float("inf"):
        parser.error(f"--link-scale {arguments.link_scale} is not a number above 0")
    if not pathlib.Path(arguments.output).parent.is_dir():
        parser.error(f"--output {arguments.output}: there is no such folder")
    if arguments.scaling:
        draw_scaling(arguments)
        return
    if arguments.measurements is None:
        parser.error("measurements or --scaling")
    setups, facts = read_measurements(arguments.measurements)
    setup = pick_setup(setups, arguments.ranks, arguments.nodes)
    curves = setups[setup]
    rules = table_rules(arguments.table, facts.get("machine"), setup)
    draw(arguments, setup, curves, facts, rules, model_times(arguments, setup, curves))


if __name__ == "__main__":
    main()
