#!/usr/bin/env python3
"""perfetto_check.py FILE: is this a trace that ui.perfetto.dev shows as it is meant? Reads it as the Trace Event
Format's importer does: complete events in microseconds, names of processes and threads, and on each thread spans that
lie inside each other or side by side. Prints what it holds."""

import json
import sys


def fail(text):
    sys.exit(f"perfetto_check.py: {text}")


def check_span(event):
    for key in ("ts", "dur"):
        if not isinstance(event.get(key), (int, float)) or event[key] < 0:
            fail(f"'{key}' is no time in {event}")
    for key in ("pid", "tid"):
        if not isinstance(event.get(key), int):
            fail(f"'{key}' is no number in {event}")
    for key in ("name", "cat"):
        if not isinstance(event.get(key), str) or not event[key]:
            fail(f"'{key}' is no word in {event}")


def check_nesting(spans):
    """Spans of one thread. An importer closes what is open when something begins after its end."""
    waits = works = calls = 0
    open_spans = []
    for span in sorted(spans, key=lambda s: (s["ts"], -s["dur"])):
        end = span["ts"] + span["dur"]
        while open_spans and open_spans[-1][0] <= span["ts"] + 1e-3:
            open_spans.pop()
        if open_spans and end > open_spans[-1][0] + 2e-3:
            fail(f"{span} ends after {open_spans[-1][1]}, which it began in")
        inside = bool(open_spans)
        if span["name"] in ("wait", "work"):
            if not inside and span["dur"] > 0:
                fail(f"{span} is in no call")
            waits += span["name"] == "wait"
            works += span["name"] == "work"
        elif inside:
            fail(f"{span} is in {open_spans[-1][1]}")
        else:
            calls += 1
        open_spans.append((end, span))
    return calls, waits, works


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    threads, names = {}, {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            if event["name"] not in ("process_name", "thread_name"):
                fail(f"unknown metadata {event}")
            names[(event["name"], event["pid"], event.get("tid"))] = event["args"]["name"]
        elif event["ph"] == "X":
            check_span(event)
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
        else:
            fail(f"unknown phase in {event}")
    if not threads:
        fail("no span")
    totals = [0, 0, 0]
    for (process, thread), spans in threads.items():
        if ("process_name", process, None) not in names or ("thread_name", process, thread) not in names:
            fail(f"thread {thread} of process {process} has no name")
        totals = [a + b for a, b in zip(totals, check_nesting(spans))]
    processes = len({process for process, _ in threads})
    print(f"{processes} processes, {len(threads)} threads, {totals[0]} calls, {totals[1]} waits, {totals[2]} works")


main()
