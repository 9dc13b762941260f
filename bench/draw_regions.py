#!/usr/bin/env python3
"""Draws docs/pictures/regions.svg: which algorithm serves which sizes on which ranks, of two machines, as hetcoll_info
explain answers without a table. The answers are calculated, not measured.

    bench/draw_regions.py build/hetcoll_info docs/pictures/regions.svg

Needs nothing but Python."""

import json
import math
import pathlib
import subprocess
import sys

from draw_pictures import BOLD, DIM, FAINT, INK, box, line, svg, text
from plot import STYLES

TOPOLOGIES = pathlib.Path(__file__).parent.parent / "topology" / "machines"
MACHINES = (
    ("dgxh100", "DGX H100: eight GPUs, all joined by NVSwitches"),
    ("dgx1v", "DGX-1 V100: eight GPUs, some joined by NVLinks"),
)
NODES = 16
LEAST, MOST = 8, 1 << 30
LEFT, WIDTH, ROW = 132, 680, 22
CHARACTER = 7.3  # width of one


def answers(program, machine):
    command = [program, "explain", "--topology", str(TOPOLOGIES / f"{machine}.topology"), "--nodes", str(NODES), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["regions"]


def x_of(size):
    return LEFT + math.log2(min(max(size, LEAST), MOST) / LEAST) / math.log2(MOST / LEAST) * WIDTH


def name_of(row):
    return f"{row['ranks']} on {row['nodes']} nodes" if row["nodes"] > 1 else f"{row['ranks']}"


def draw_row(row, y, used):
    """The boxes of one number of ranks."""
    parts = [text(LEFT - 10, y + 15, name_of(row), "end")]
    regions = row["regions"]
    for i, region in enumerate(regions):
        left = x_of(region["first_bytes"])
        right = x_of(regions[i + 1]["first_bytes"]) if i + 1 < len(regions) else LEFT + WIDTH
        if right <= left:
            continue
        name = region["algorithm"]
        used.setdefault(name)
        fits = right - left > CHARACTER * len(name) + 8
        parts.append(box(left, y, right - left - 1, ROW - 2, STYLES[name][0], name if fits else ""))
    return parts


def draw_machine(rows, title, top, used):
    parts = [text(LEFT, top, title, size=14, more=BOLD)]
    y = top + 10
    for row in rows:
        if row["nodes"] == 2:
            y += 8  # between one node and several
        parts += draw_row(row, y, used)
        y += ROW
    for power in range(3, 31, 3):
        size = 1 << power
        unit = ("", "K", "M", "G")[power // 10]
        x = x_of(size)
        parts += [line([(x, y), (x, y + 5)], DIM),
                  text(x, y + 18, f"{size >> power // 10 * 10}{unit}", "middle", DIM, 12)]
    parts.append(line([(LEFT, y), (LEFT + WIDTH, y)], FAINT))
    return parts, y + 18


def draw(program):
    used, parts = {}, [text(10, 26, "Which algorithm serves MPI_Allreduce of floats in GPU memory?", size=17, more=BOLD),
                       text(10, 46, "Calculated from the links of each machine by hetcoll_info explain, without a tuning "
                            "table. Not measured.", colour="firebrick")]
    y = 78
    for machine, title in MACHINES:
        panel, y = draw_machine(answers(program, machine), title, y, used)
        parts += panel
        y += 40
    y -= 22
    parts += [text(LEFT + WIDTH / 2, y, "bytes of the vector", "middle", DIM),
              text(LEFT - 10, 78, "ranks", "end", DIM)]
    y += 16
    x = LEFT
    for name in (name for name in STYLES if name in used):
        width = 20 + CHARACTER * len(name) + 14
        if x + width > LEFT + WIDTH:
            x, y = LEFT, y + 20
        parts += [box(x, y, 13, 13, STYLES[name][0]), text(x + 18, y + 11.5, name, colour=INK, size=12)]
        x += width
    return svg(LEFT + WIDTH + 22, y + 28, "Which algorithm serves which sizes on which ranks, calculated", parts)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[2]).write_text(draw(sys.argv[1]))


if __name__ == "__main__":
    main()
