#!/usr/bin/env python3
"""Draws the pictures of docs/unequal-gpus.md, internals/shares.md and internals/in-network.md, by the models that the
pages describe, with the measured points of bench/results:

    bench/draw_pictures.py docs/pictures

Needs nothing but Python."""

import pathlib
import random
import sys

COLOURS = ["#3b6ea5", "#3f7d3f", "#a8621f", "#7a559f"]  # white text on them can be read
INK, DIM, FAINT = "#222", "#555", "#ddd"
FONT = 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif"'
BOLD = ' font-weight="bold"'
HALO = ' stroke="white" stroke-width="5" paint-order="stroke"'  # hides the lines behind a text


def text(x, y, words, anchor="start", colour=INK, size=13, more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {FONT} font-size="{size}" fill="{colour}"'
            f'{more}>{words}</text>')


def line(points, colour=INK, width=1.0, dashes="", more=""):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-dasharray="{dashes}"{more}/>')


def box(x, y, width, height, fill, words="", stroke="none", colour="white"):
    parts = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="{stroke}"/>'
    return parts + (text(x + width / 2, y + height / 2 + 4.5, words, "middle", colour) if words else "")


def svg(width, height, title, parts):
    """On white, so that it can be read on dark pages too."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">\n<title>{title}</title>\n'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def time_axis(left, scale, top, bottom, last, label):
    """Ticks from 0 to `last`, one a unit, with a faint line up from each."""
    parts = []
    for tick in range(last + 1):
        x = left + tick * scale
        parts += [line([(x, top), (x, bottom)], FAINT), line([(x, bottom), (x, bottom + 5)]),
                  text(x, bottom + 19, tick, "middle")]
    parts.append(line([(left, bottom), (left + last * scale, bottom)]))
    parts.append(text(left + last * scale / 2, bottom + 40, label, "middle"))
    return parts


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
            end[rank] = begin + generator.lognormvariate(-0.18, 0.6)  # 1 on average
            row.append((begin, end[rank]))
        complete.append(max(end))
        bars.append(row)
    return bars


def draw_waves():
    ranks, waves, last_tick, scale, left, pitch = 3, 7, 10, 58, 96, 26
    block = ranks * pitch + 38
    bottom = 10 + 3 * block
    parts = time_axis(left, scale, 14, bottom, last_tick, "time, in mean times of a wave")
    for distance in (0, 1, 2):
        top = 34 + distance * block
        parts.append(text(8, top - 8, f"distance {distance}", more=BOLD))
        bars = model(ranks, distance, waves, seed=9)
        for rank in range(ranks):
            y = top + rank * pitch
            parts.append(text(8, y + 15, f"rank {rank}"))
            for wave, row in enumerate(bars):
                begin, end = row[rank]
                parts.append(box(left + begin * scale, y, max(1.0, (end - begin) * scale - 1), 21, COLOURS[wave % 4],
                                 str(wave)))
        last = max(end for _, end in bars[-1])
        x = left + last * scale
        parts.append(line([(x, top - 6), (x, top + ranks * pitch)], INK, 1.5, "4 3"))
        parts.append(text(x + 6, top + 15, f"all done: {last:.1f}", more=HALO))
    return svg(left + last_tick * scale + 30, bottom + 52, "The same steps at distances 0, 1 and 2", parts)


def draw_placement():
    models = {"V": "TITAN V", "R": "TITAN RTX", "G": "RTX 2060", "Q": "Quadro P4000"}  # nodes 0 to 3
    policies = [  # the worker of GPU g on node n
        ("NP", lambda node, gpu: node),
        ("ED, ED-local", lambda node, gpu: gpu),
        ("HD", lambda node, gpu: (0 if node in (0, 3) else 2) + gpu // 2),
    ]
    parts, left, top = [], 80, 32
    for i, (name, worker) in enumerate(policies):
        x0 = left + i * 190
        parts.append(text(x0, top - 12, name, more=BOLD))
        for node, letter in enumerate(models):
            y = top + node * 42
            if i == 0:
                parts.append(text(8, y + 20, f"node {node}"))
            parts.append(box(x0 - 4, y - 4, 148, 38, "none", stroke="#888"))
            for gpu in range(4):
                parts.append(box(x0 + gpu * 36, y, 32, 30, COLOURS[worker(node, gpu)], letter))
    y = top + 4 * 42 + 22
    parts.append(text(8, y, "colour"))
    for worker, colour in enumerate(COLOURS):
        x = left + worker * 120
        parts += [box(x, y - 11, 14, 14, colour), text(x + 20, y, f"worker {worker}")]
    parts.append(text(8, y + 26, "letter"))
    for i, (letter, name) in enumerate(models.items()):
        parts.append(text(left + i * 120, y + 26, f"{letter}: {name}"))
    return svg(left + 3 * 190 - 30, y + 42, "Which worker the GPUs of each node belong to", parts)


RESULTS = pathlib.Path(__file__).parent / "results"


def measured(name):
    """The rows of a results file: a dict from the first word to the numbers after it, the first of each name."""
    rows = {}
    for row in (RESULTS / name).read_text().splitlines():
        words = row.split()
        if words and not row.startswith("#"):
            rows.setdefault(words[0], [float(word) for word in words[1:7]])
    return rows


NOTES = ("M: bytes of the vector", "b: rate of a link", "measured on modelled links:", "not GPU speed")


def chart(title, x_label, y_label, x_range, y_most, ticks, curves, points):
    """Curves and points in units of the axes. ticks: of x."""
    left, top, width, height = 64, 16, 440, 230
    x_least, x_most = x_range

    def at(x, y):
        return left + (x - x_least) / (x_most - x_least) * width, top + height - y / y_most * height

    parts = []
    for tick in range(int(y_most) + 1):
        x, y = at(x_least, tick)
        parts += [line([(x - 5, y), (x, y)]), line([(x, y), (x + width, y)], FAINT), text(x - 9, y + 4.5, tick, "end")]
    for tick in ticks:
        x, y = at(tick, 0)
        parts += [line([(x, y), (x, y + 5)]), text(x, y + 19, f"{tick:g}", "middle")]
    parts.append(line([at(x_least, y_most), at(x_least, 0), at(x_most, 0)]))
    parts.append(text(left + width / 2, top + height + 42, x_label, "middle"))
    middle = top + height / 2
    parts.append(text(18, middle, y_label, "middle", more=f' transform="rotate(-90 18 {middle})"'))
    legend = left + width + 20
    for i, (name, colour, dashes, function) in enumerate(curves):
        steps = [x_least + (x_most - x_least) * step / 100 for step in range(101)]
        parts.append(line([at(x, function(x)) for x in steps], colour, 2.5, dashes))
        y = top + 10 + 22 * i
        parts += [line([(legend, y), (legend + 30, y)], colour, 2.5, dashes), text(legend + 38, y + 4.5, name)]
    for i, (name, colour, places) in enumerate(points):
        dots = [at(x, y) for x, y in places]
        y = top + 10 + 22 * (len(curves) + i)
        radius = 7 - 3 * i  # a later point on an earlier one leaves a rim
        parts += [f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{radius}" fill="{colour}"/>'
                  for cx, cy in dots + [(legend + 15, y)]]
        parts.append(text(legend + 38, y + 4.5, name))
    parts += [text(legend, top + 130 + 19 * i, note, colour=DIM) for i, note in enumerate(NOTES)]
    return svg(legend + 250, top + height + 56, title, parts)


def draw_shares():
    """Eight ranks, one with a slower link: times of the closed forms over its rate, in units of M/b."""
    ranks, rows = 8, measured("weighted_shares.txt")
    unit = rows["half"][2] / 2  # T is 2 M/b there
    return chart("Eight ranks, one with a slow link: time of the ring and the bound",
                 "rate of the slow rank's link / rate b of the others' links", "time of a call / (M/b)", (0.25, 1), 7,
                 (0.25, 0.5, 0.75, 1), [
        ("ring", COLOURS[2], "", lambda rate: 2 * (ranks - 1) / ranks / min(rate, 1)),
        ("T, the lower bound", INK, "5 4",
         lambda rate: max(2 * (ranks - 1) / (ranks - 1 + rate), 1 / min(rate, 1))),
    ], [(f"{name}, measured", colour, [(0.5, rows["half"][column] / unit), (1, rows["equal"][column] / unit)])
        for name, colour, column in (("ring", COLOURS[2], 1), ("weighted", COLOURS[0], 0))])


def draw_late():
    """Eight ranks, one late: times after its arrival over its lateness, in units of M/b."""
    ranks, rows = 8, measured("late_ranks.txt")
    ring = 2 * (ranks - 1) / ranks
    early = (ranks - 2) / (ranks - 1)  # a reduce-scatter among the others, done before
    unit = rows["late"][2] / ring
    return chart("Time after the late rank has come, over its lateness", "how late one rank comes / (M/b)",
                 "time after it has come / (M/b)", (0, 2.2), 2, (0, 0.5, 1, 1.5, 2), [
        ("coll_hetcoll_skew 0: a ring", COLOURS[2], "", lambda late: ring),
        ("coll_hetcoll_skew 1", COLOURS[0], "", lambda late: min(ring, 1 + max(0, early - late))),
    ], [("0, measured", COLOURS[2], [(2, rows["late"][1] / unit)]),
        ("1, measured", COLOURS[0], [(2, rows["late"][0] / unit)])])


def draw_window():
    """A vector of six messages, a window of three, three ranks, the last of them slow to begin: when the
    messages are on each link."""
    messages, window, scale, left, delay = 6, 3, 56, 170, 0.25
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
    rows = [(f"rank {rank} sends", sent[rank]) for rank in range(3)] + [("aggregator sends sums", added)]
    top, pitch = 40, 32
    bottom = top + len(rows) * pitch + 4
    parts = time_axis(left, scale, top - 8, bottom, 9, "time, in times that a message takes on a link")
    x = left + back[0] * scale
    parts.append(line([(x - 2, top - 10), (x - 2, top + 2 * pitch - 4)], INK, 1.5, "4 3"))
    parts.append(text(x, top - 18, "sum 0 has arrived: message 3 may go", "middle"))
    for row, (name, times) in enumerate(rows):
        y = top + row * pitch
        parts.append(text(8, y + 16, name))
        for i, start in enumerate(times):
            parts.append(box(left + start * scale, y, scale - 2, 24, COLOURS[0 if i < window else 2], str(i)))
    y = bottom + 66
    parts += [box(left, y - 11, 14, 14, COLOURS[0]), text(left + 20, y, "the first window"),
              box(left + 160, y - 11, 14, 14, COLOURS[2]),
              text(left + 180, y, "goes when the sum three before it has come")]
    return svg(left + 9 * scale + 30, y + 14, "Three ranks, six messages, a window of three", parts)


def node(x, y, width, words, fill="#e3f2fd"):
    """A box around (x, y)."""
    return box(x - width / 2, y - 15, width, 30, fill, words, DIM, INK)


def arrow(begin, end, both=True):
    start = ' marker-start="url(#tip)"' if both else ""
    return line([begin, end], DIM, 1.6, more=f'{start} marker-end="url(#tip)"')


def draw_in_network():
    switch, spine_fill = "#fff3e0", "#ffdfb0"
    top, low, caption = 76, 226, 276
    parts = []

    def panel(middle, name, captions):
        parts.append(text(middle, 28, name, "middle", size=15, more=BOLD))
        parts.extend(text(middle, caption + 19 * i, words, "middle") for i, words in enumerate(captions))

    panel(130, "ring", ("2(n-1) steps:", "a rank sends 2(n-1)/n vectors"))
    corners = [(60, top), (200, top), (200, low), (60, low)]
    for rank, (x, y) in enumerate(corners):
        parts.append(node(x, y, 62, f"rank {rank}"))
    for begin, end in (((91, top), (169, top)), ((200, top + 15), (200, low - 15)), ((169, low), (91, low)),
                       ((60, low - 15), (60, top + 15))):
        parts.append(arrow(begin, end, both=False))

    middle = 425
    panel(middle, "one aggregator",
          ("a rank sends 1 vector and receives 1,", "the aggregator's link carries n each way"))
    parts.append(node(middle, top, 150, "hetcoll_aggregator", switch))
    for rank in range(4):
        x = middle - 108 + 72 * rank
        parts += [node(x, low, 62, f"rank {rank}"), arrow((middle - 48 + 32 * rank, top + 15), (x, low - 15))]

    middle = 765
    panel(middle, "leaves and a spine", ("a leaf sends its spine 1 vector,", "however many ranks it has"))
    parts.append(node(middle, top, 74, "spine", spine_fill))
    for leaf in (0, 1):
        x, y = middle - 75 + 150 * leaf, (top + low) / 2
        parts += [node(x, y, 74, f"leaf {leaf}", switch), arrow((middle - 18 + 36 * leaf, top + 15), (x, y - 15))]
        for i in range(3):
            parts += [node(x - 46 + 46 * i, low, 38, str(3 * leaf + i)),
                      arrow((x - 22 + 22 * i, y + 15), (x - 46 + 46 * i, low - 15))]

    parts.append(text(465, 330, "Double arrows: message k goes up, sum k comes down.", "middle", DIM))
    parts.append(text(465, 350, "A rank has at most N messages on their way (the window). "
                      "Sums are in the order of the ranks.", "middle", DIM))
    return svg(930, 366, "A ring, one aggregator, leaves and a spine", parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    for name, draw in (("waves", draw_waves), ("placement", draw_placement), ("unequal-links", draw_shares),
                       ("late-ranks", draw_late), ("aggregator-window", draw_window), ("in-network", draw_in_network)):
        (folder / f"{name}.svg").write_text(draw())


if __name__ == "__main__":
    main()
