// Looks a call up in the data of this page. tools/report_answers.cc has found the answers, and the words for them.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const { algorithms, table, setups, texts } = data;
const nameOf = (algorithm) => algorithms[algorithm];
const byUs = (a, b) => a.us - b.us || a.algorithm - b.algorithm;

// [{algorithm, us, givenUp}], the cheapest first. Between two sizes a price is a line; a negative one was given up.
function pricesAt({ sizes, us: prices }, bytes) {
    const above = sizes.findIndex((size) => size >= bytes);
    const next = above < 0 ? sizes.length - 1 : Math.max(above, 1);
    const part = (bytes - sizes[next - 1]) / (sizes[next] - sizes[next - 1]);
    const rows = prices.map(([algorithm, ...us]) => {
        const at = us[next - 1] + part * (us[next] - us[next - 1]);
        return { algorithm, us: Math.abs(at), givenUp: at < 0 };
    });
    return rows.filter(({ us }) => us > 0).sort(byUs);
}

const isOf = (call) => ({ element, op, memory, reproducible }) =>
    element === call.element && op === call.op && memory === call.memory && reproducible === (call.reproducible ?? false);

// {algorithm, byRule, served, because, note, prices, ranges}; null: this page knows of no such calls.
function answerTo(call) {
    const setup = setups.find(({ ranks, nodes }) => ranks === call.ranks && nodes === call.nodes);
    const answer = data.answers?.[setup?.answers[data.kinds.findIndex(isOf(call))]];
    if (!answer) return null;
    const [, algorithm, byRule, served, because] = answer.ranges.findLast(([first]) => first <= call.bytes);
    return {
        algorithm,
        byRule: byRule === 1,
        served: texts[served],
        because: texts[because],
        note: setup.note,
        prices: pricesAt(data.prices[answer.prices], call.bytes),
        ranges: answer.ranges,
    };
}
