#!/usr/bin/env python3
"""page.py [--write]: the blocks of docs/internals/papers.md that begin with "## NAME:" are the sections of
bench/results/papers.txt of these names. Says which are not, or with --write makes them so."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE, RESULTS = ROOT / "docs" / "internals" / "papers.md", ROOT / "bench" / "results" / "papers.txt"


def sections():
    """{name: text}"""
    try:
        results = RESULTS.read_text()
    except OSError as problem:
        sys.exit(f"page.py: {RESULTS} cannot be read ({problem.strerror}): make it with bench/papers.sh")
    found = {}
    for text in re.split(r"\n\n+", results):
        head = re.match(r"## ([\w-]+):", text)
        if head:
            found[head[1]] = text.rstrip("\n")
    return found


def main():
    known, differ = sections(), []

    def block(match):
        name = match[2]
        if name not in known:
            sys.exit(f"page.py: {PAGE} shows '{name}', which is no section of {RESULTS}")
        if match[0] != match[1] + known[name] + match[4]:
            differ.append(name)
        return match[1] + known[name] + match[4]

    text = PAGE.read_text()
    made, shown = re.subn(r"(^```text\n)## ([\w-]+):(.*?)(\n```$)", block, text, flags=re.MULTILINE | re.DOTALL)
    if shown == 0:
        sys.exit(f"page.py: {PAGE} shows no section")
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(made)
    elif differ:
        sys.exit(f"page.py: {PAGE} and {RESULTS} differ in {', '.join(differ)}: run bench/papers/page.py --write")


main()
