#!/usr/bin/env python3
"""Draws the pictures of docs/wsp.md and docs/placement.md, by the model that the pages describe:

    bench/draw_waves.py docs/pictures          # waves.svg, placement.svg

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


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    (folder / "waves.svg").write_text(draw_waves())
    (folder / "placement.svg").write_text(draw_placement())


if __name__ == "__main__":
    main()
