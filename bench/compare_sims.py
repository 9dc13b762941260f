#!/usr/bin/env python3
"""compare_sims.py COMMIT [COMMIT]: what hetcoll chooses at the cases of bench/results/sim_*.txt, in the results that the
first commit has and in those of the second one, or of this folder. A case is a cluster, nodes and a size; what was asked
for by name is left out. All of it is simulated: no machine was measured. Prints a results file."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = "bench/results"


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def files_of(commit):
    if commit is None:
        return [path.read_text() for path in sorted((ROOT / FOLDER).glob("sim_*.txt"))]
    names = git("ls-tree", "--name-only", commit, FOLDER + "/").split()
    return [git("show", f"{commit}:{name}") for name in names if "/sim_" in name and name.endswith(".txt")]


def choices(texts):
    """{(cluster, nodes, ranks, bytes): (us, algorithm, commit)}: the first line of a case is what auto has chosen."""
    cases = {}
    for text in texts:
        cluster, commit = None, None
        for line in text.splitlines():
            words = line.split()
            if line.startswith("# cluster"):
                cluster = words[2].split(".")[0]
            elif line.startswith("# commit"):
                commit = words[2]
            elif cluster and " | " in line and words[0].isdigit():
                left, right = (half.split() for half in line.split(" | "))
                case = cluster, int(right[1]), int(right[0]), int(left[0])
                if left[2] == "in_network" or case in cases:  # nobody chooses switches that reduce
                    continue
                cases[case] = float(left[5]), left[2], commit
    return cases


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    commits = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    before, after = (choices(files_of(commit)) for commit in commits)
    both = sorted(set(before) & set(after))
    if not both:
        sys.exit("compare_sims.py: the two have no case in common")
    print("# result        simulated: the time of a model, no machine was measured")
    print(f"# commit        {git('describe', '--always', '--dirty', '--abbrev=12').strip()}")
    print(f"# before        results in {commits[0]}, after: in {commits[1] or 'this commit'}")
    print("# A line a case: what is chosen, before and after; over: the time after over that before.")
    print(f"#{'cluster':>14} {'nodes':>5} {'ranks':>5} {'bytes':>10} {'before':>18} {'us':>9} {'after':>18} {'us':>9} {'over':>6}")
    ratios, same = [], 0
    for case in both:
        (old, was, made), (new, now, remade) = before[case], after[case]
        if made == remade:
            same += 1
            continue
        ratios.append(new / old)
        print(f"{case[0]:>15} {case[1]:5} {case[2]:5} {case[3]:10} {was:>18} {old:9.1f} {now:>18} {new:9.1f} {new / old:6.3f}")
    slower = [ratio for ratio in ratios if ratio > 1.0005]
    print(f"# {len(ratios)} cases, {sum(ratio < 0.9995 for ratio in ratios)} faster, {len(slower)} slower"
          + (f", by {100 * (max(slower) - 1):.1f} % at most" if slower else ""))
    if same:
        print(f"# {same} cases more have not been made anew")
    for what, alone in (("before", set(before) - set(after)), ("after", set(after) - set(before))):
        if alone:
            print(f"# {len(alone)} cases {what} only")


main()
