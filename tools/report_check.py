#!/usr/bin/env python3
"""report_check.py PAGE COMMAND...: every answer in the data of a page of hetcoll_info is what COMMAND, which is
`hetcoll_info explain` with the machine and the table of the page, says: at both sides of every change, and at sizes
between them. Looks answers up as tools/report/lookup.js does."""
import json
import random
import re
import subprocess
import sys

RANDOM_SIZES = 20


def looked_up(data, answer, size):
    _, serves, _, served, because = [one for one in answer["ranges"] if one[0] <= size][-1]
    sizes, prices_of = (data["prices"][answer["prices"]][name] for name in ("sizes", "us"))
    after = max(next((i for i, at in enumerate(sizes) if at >= size), len(sizes) - 1), 1)
    part = (size - sizes[after - 1]) / (sizes[after] - sizes[after - 1])
    prices = {}
    for algorithm, *us in prices_of:
        at = us[after - 1] + part * (us[after] - us[after - 1])
        if at != 0:
            prices[algorithm] = abs(at), at < 0 and algorithm != serves
    return data["texts"][served], data["texts"][because], prices


def explained(numbers, command, sizes):
    text = subprocess.run(command + ["--bytes", ",".join(map(str, sizes))], check=True, stdout=subprocess.PIPE, text=True).stdout
    for block in re.split(r"^(?=call  )", text, flags=re.M)[1:]:
        served = re.search(r"^served by  (.*)", block, re.M)[1]
        because = re.search(r"^because    (.*)", block, re.M)[1]
        table = re.search(r"^table      (.*)", block, re.M)
        rows = re.findall(r"^(\w+) +([0-9.]+)(.*)", block[block.index("\nalgorithm ") :].split("\n\n")[0], re.M)
        prices = {numbers[name]: (float(us), "given up" in words) for name, us, words in rows}
        yield served, because, prices, table[1] if table else ""


def sizes_of(data, answer):
    sizes = {round(2 ** random.uniform(0, 33)) for _ in range(RANDOM_SIZES)}
    for edge in [one[0] for one in answer["ranges"]] + data["prices"][answer["prices"]]["sizes"]:
        sizes |= {edge - 1, edge, edge + 1, (edge * 3 + 1) // 2}
    return sorted(size for size in sizes if 1 <= size <= data["mostBytes"])


def same_prices(page, command):
    return page.keys() == command.keys() and all(
        given_up == command[algorithm][1] and abs(us - command[algorithm][0]) <= 0.051 + 1e-5 * us
        for algorithm, (us, given_up) in page.items()
    )


def main():
    random.seed(1)
    with open(sys.argv[1], encoding="utf-8") as file:
        script = r'<script id="data" type="application/json">(.*?)</script>'
        data = json.loads(re.search(script, file.read(), re.S)[1])
    numbers = {name: number for number, name in enumerate(data["algorithms"])}
    compared = wrong = 0
    for setup in data["setups"]:
        numbers_of_answers = setup["answers"]
        # The first kind of call of each answer, and another one.
        kinds = {numbers_of_answers.index(answer) for answer in numbers_of_answers} | {random.randrange(len(data["kinds"]))}
        for number in sorted(kinds):
            kind, answer = data["kinds"][number], data["answers"][numbers_of_answers[number]]
            sizes = sizes_of(data, answer)
            command = sys.argv[2:] + ["--ranks", str(setup["ranks"]), "--nodes", str(setup["nodes"]), "--op", kind["op"]]
            command += ["--element", str(kind["element"])] + ["--mixed"] * (kind["memory"] == "mixed")
            command += ["--reproducible"] * kind["reproducible"]
            for size, said in zip(sizes, explained(numbers, command, sizes), strict=True):
                served, because, prices = looked_up(data, answer, size)
                compared += 1
                if (served, because, setup["note"]) != (said[0], said[1], said[3]) or not same_prices(prices, said[2]):
                    wrong += 1
                    if wrong <= 5:
                        print(f"{' '.join(command)} --bytes {size}:\n  page: {served}, because {because}, {prices}, {setup['note']}\n  says: {said}")
    print(f"{compared} calls looked up, {wrong} wrong")
    return 1 if wrong or compared == 0 else 0


sys.exit(main())
