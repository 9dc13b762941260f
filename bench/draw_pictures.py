#!/usr/bin/env python3
"""Draws the pictures of docs/wsp.md, placement.md, unequal-links.md, late-ranks.md and aggregators.md, by the models that
the pages describe, with the measured points of bench/results:

    bench/draw_pictures.py docs/pictures

Needs nothing but Python."""

import pathlib
import random
import sys

COLOURS = ["#4878a8", "#6aa56a", "#c9803b", "#8c6bb1"]
TEXT = 'font-family="sans-serif" font-size="12" fill="#333"'


def model(ranks, distance, waves, seed):
    """For each rank and wave: when its computation begins and ends, if a rank waits only for waves that are
    more than the distance behind."""
    generator = random.Random(seed)
    end, complete, bars = [0.0] * ranks, [], []
    for wave in range(waves):
        gate = complete[wave - 1 - distance] if wave > distance else 0.0
        row = []
        for rank in range(ranks):
            begin = max(end[rank], gate)
            end[rank] = begin + generator.lognormvariate(-0.18, 0.6)
            row.append((begin, end[rank]))
        complete.append(max(end))
        bars.append(row)
    return bars


def svg(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">\n<rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def draw_waves():
    ranks, waves, scale, left, top = 3, 7, 52, 70, 24
    parts = []
    for distance in (0, 1, 2):
        parts.append(f'<text x="8" y="{top - 6}" {TEXT}>distance {distance}</text>')
        bars = model(ranks, distance, waves, seed=9)
        for rank in range(ranks):
            y = top + rank * 24
            parts.append(f'<text x="8" y="{y + 14}" {TEXT}>rank {rank}</text>')
            for wave, row in enumerate(bars):
                begin, end = row[rank]
                x, width = left + begin * scale, max(1.0, (end - begin) * scale - 1)
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" '
                             f'fill="{COLOURS[wave % 4]}"/>')
                if width > 9:
                    parts.append(f'<text x="{x + width / 2:.1f}" y="{y + 13}" text-anchor="middle" '
                                 f'font-family="sans-serif" font-size="11" fill="white">{wave}</text>')
        last = left + max(end for _, end in bars[-1]) * scale
        parts.append(f'<line x1="{last:.1f}" y1="{top - 6}" x2="{last:.1f}" y2="{top + ranks * 24}" '
                     f'stroke="#333" stroke-dasharray="3 3"/>')
        top += ranks * 24 + 34
    return svg(620, top - 20, parts)


def draw_placement():
    letters = "VRGQ"  # the GPUs of nodes 0 to 3
    policies = [  # the worker of GPU g on node n
        ("NP", lambda node, gpu: node),
        ("ED, ED-local", lambda node, gpu: gpu),
        ("HD", lambda node, gpu: (0 if node in (0, 3) else 2) + gpu // 2),
    ]
    parts, left = [], 70
    for name, worker in policies:
        parts.append(f'<text x="{left}" y="18" {TEXT}>{name}</text>')
        for node in range(4):
            y = 28 + node * 40
            if left == 70:
                parts.append(f'<text x="8" y="{y + 20}" {TEXT}>node {node}</text>')
            parts.append(f'<rect x="{left - 4}" y="{y - 3}" width="148" height="36" fill="none" stroke="#999"/>')
            for gpu in range(4):
                x = left + gpu * 36
                parts.append(f'<rect x="{x}" y="{y}" width="32" height="30" fill="{COLOURS[worker(node, gpu)]}"/>')
                parts.append(f'<text x="{x + 16}" y="{y + 20}" text-anchor="middle" font-family="sans-serif" '
                             f'font-size="13" fill="white">{letters[node]}</text>')
        left += 190
    return svg(left - 30, 200, parts)


RESULTS = pathlib.Path(__file__).parent / "results"


def measured(name):
    """The rows of a results file: a dict from the first word to the numbers after it, the first of each name."""
    rows = {}
    for line in (RESULTS / name).read_text().splitlines():
        words = line.split()
        if words and not line.startswith("#"):
            rows.setdefault(words[0], [float(word) for word in words[1:7]])
    return rows


def line(points, colour, dashes=""):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'


def chart(x_label, y_label, x_range, y_most, ticks, curves, points):
    """Curves and points in units of the axes. ticks: of x."""
    left, top, width, height = 60, 20, 420, 220
    x_least, x_most = x_range

    def at(x, y):
        return left + (x - x_least) / (x_most - x_least) * width, top + height - y / y_most * height

    parts = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>',
             f'<text x="{left + width / 2}" y="{top + height + 36}" text-anchor="middle" {TEXT}>{x_label}</text>',
             f'<text x="16" y="{top + height / 2}" text-anchor="middle" {TEXT} '
             f'transform="rotate(-90 16 {top + height / 2})">{y_label}</text>']
    for tick in ticks:
        x, y = at(tick, 0)
        parts.append(f'<text x="{x:.0f}" y="{y + 16:.0f}" text-anchor="middle" {TEXT}>{tick:g}</text>')
    for tick in range(int(y_most) + 1):
        x, y = at(x_least, tick)
        parts.append(f'<text x="{x - 6:.0f}" y="{y + 4:.0f}" text-anchor="end" {TEXT}>{tick}</text>')
        parts.append(line([(x, y), (x + width, y)], "#ddd"))
    for i, (name, colour, dashes, function) in enumerate(curves):
        steps = [x_least + (x_most - x_least) * step / 100 for step in range(101)]
        parts.append(line([at(x, function(x)) for x in steps], colour, dashes))
        y = top + 10 + 20 * i
        parts.append(line([(left + width + 14, y), (left + width + 44, y)], colour, dashes))
        parts.append(f'<text x="{left + width + 50}" y="{y + 4}" {TEXT}>{name}</text>')
    for i, (name, colour, places) in enumerate(points):
        for x, y in places:
            x, y = at(x, y)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        y = top + 10 + 20 * (len(curves) + i)
        parts.append(f'<circle cx="{left + width + 29}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{left + width + 50}" y="{y + 4}" {TEXT}>{name}</text>')
    return svg(left + width + 180, top + height + 46, parts)


def draw_shares():
    """Eight ranks, one with a slower link: times of the closed forms over its rate, in units of M/b."""
    ranks, rows = 8, measured("weighted_shares.txt")
    unit = rows["half"][2] / 2  # T is 2 M/b there
    return chart("rate of the slow rank's link, of the others'", "time, in M/b", (0.25, 1.05), 7, (0.25, 0.5, 0.75, 1), [
        ("ring", COLOURS[2], "", lambda rate: 2 * (ranks - 1) / ranks / min(rate, 1)),
        ("T: none takes less", "#333", "4 4",
         lambda rate: max(2 * (ranks - 1) / (ranks - 1 + rate), 1 / min(rate, 1))),
    ], [(f"{name}, measured", colour, [(0.5, rows["half"][column] / unit), (1, rows["equal"][column] / unit)])
        for name, colour, column in (("ring", COLOURS[2], 1), ("weighted", COLOURS[0], 0))])


def draw_late():
    """Eight ranks, one late: times after its arrival over its lateness, in units of M/b."""
    ranks, rows = 8, measured("late_ranks.txt")
    ring = 2 * (ranks - 1) / ranks
    early = (ranks - 2) / (ranks - 1)  # a reduce-scatter among the others, done before
    unit = rows["late"][2] / ring
    return chart("how late one rank comes, in M/b", "time after it has come, in M/b", (0, 2.2), 3, (0, 0.5, 1, 1.5, 2), [
        ("off: a ring", COLOURS[2], "", lambda late: ring),
        ("on", COLOURS[0], "", lambda late: min(ring, 1 + max(0, early - late))),
    ], [("off, measured", COLOURS[2], [(2, rows["late"][1] / unit)]),
        ("on, measured", COLOURS[0], [(2, rows["late"][0] / unit)])])


def draw_window():
    """A vector of six messages, a window of three, three ranks, the last of them slow to begin: when the
    messages are on each link."""
    messages, window, scale, left, delay = 6, 3, 44, 120, 0.25
    begin = [0.0, 0.3, 1.1]
    sent = [[0.0] * messages for _ in begin]
    back, added = [0.0] * messages, [0.0] * messages
    free = list(begin)
    for i in range(messages):
        for rank in range(3):
            start = max(free[rank], back[i - window] if i >= window else 0.0)
            sent[rank][i], free[rank] = start, start + 1
        added[i] = max(sent[rank][i] + 1 + delay for rank in range(3))
        added[i] = max(added[i], added[i - 1] + 1 if i else 0.0)
        back[i] = added[i] + 1 + delay
    parts, rows = [], [(f"rank {rank} sends", sent[rank]) for rank in range(3)] + [("sums go to all", added)]
    for row, (name, times) in enumerate(rows):
        y = 14 + row * 30
        parts.append(f'<text x="8" y="{y + 15}" {TEXT}>{name}</text>')
        for i, start in enumerate(times):
            x = left + start * scale
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{scale - 2}" height="22" fill="{COLOURS[i % 4]}"/>')
            parts.append(f'<text x="{x + scale / 2 - 1:.1f}" y="{y + 16}" text-anchor="middle" '
                         f'font-family="sans-serif" font-size="12" fill="white">{i}</text>')
    return svg(int(left + max(back) * scale) + 10, 140, parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    (folder / "waves.svg").write_text(draw_waves())
    (folder / "placement.svg").write_text(draw_placement())
    (folder / "unequal-links.svg").write_text(draw_shares())
    (folder / "late-ranks.svg").write_text(draw_late())
    (folder / "aggregator-window.svg").write_text(draw_window())


if __name__ == "__main__":
    main()
