"""What the four papers' scripts share: published figures, simulations, and how a section looks."""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MACHINES = ROOT / "topology" / "machines"
MIB = 1 << 20


def options(what):
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("build", type=pathlib.Path, help="build folder, with hetcoll_sim")
    parser.add_argument("--small", action="store_true", help="a few rows of each table only, for a test")
    return parser.parse_args()


def published():
    """{key: row} of published.csv, values as numbers."""
    with open(HERE / "published.csv", newline="") as file:
        rows = {row["key"]: row for row in csv.DictReader(file)}
    for row in rows.values():
        row["value"] = float(row["value"]) if row["value"] else None
    return rows


def run(*command):
    """What the command prints. Ends this program with its message if it fails."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as problem:
        sys.exit(f"{sys.argv[0]}: {command[0]} cannot run ({problem.strerror}): build it first")
    if done.returncode != 0:
        sys.exit(f"{sys.argv[0]}: {' '.join(command)} fails: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def simulate(build, topology, sizes, algorithms, nodes=(), extra=()):
    """{(nodes, bytes, algorithm asked for): result} of hetcoll_sim on a topology or cluster file."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        run(build / "hetcoll_sim", "--topology", topology, "--bytes", ",".join(map(str, sizes)), "--algorithm",
            ",".join(algorithms), *(["--nodes", ",".join(map(str, nodes))] if nodes else []), "--json", file.name,
            *extra)
        results = json.load(open(file.name))["results"]
    return {(one["nodes"], one["bytes"], one["asked"]): one for one in results}


def section(name, how, papers=(), notes=()):
    """Prints the head of a section: how its figures were made, and what the paper says there."""
    print(f"\n## {name}: {how}")
    for key in papers:
        row = published()[key]
        value = "" if row["value"] is None else f"{row['value']:g} {row['unit']}".strip() + ": "
        print(f"# published     {value}{row['what']}")
        print(f"#               [{row['source']}]")
    for note in notes:
        print(f"# {note}")


def size_name(count):
    """8, 64K, 100M."""
    for unit, name in ((MIB, "M"), (1024, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit}{name}"
    return str(count)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
