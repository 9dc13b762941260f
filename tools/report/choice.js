// Which algorithm serves a call, and what the others cost: choose() of choice/choose.cc, find() of
// tuning/table.cc and us() of price/price_table.cc once more, over the data of this page. The test
// compares it with hetcoll_info --explain.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const { algorithms, table, prices } = data;
const nameOf = (algorithm) => algorithms.names[algorithm];
const has = (set, algorithm) => ((set >>> algorithm) & 1) === 1;
const lastSize = algorithms.sizes.length - 1;

// A price of the page: [us, chunk, between, ways], us -1 for one that was given up.
function cell(setup, size, algorithm, alone) {
    const compared = setup.together[size][algorithm] ?? null;
    return alone ? (setup.alone[size][algorithm] ?? compared) : compared;
}
const usOf = (priced) => (priced === null ? 0 : priced[0] < 0 ? Infinity : priced[0]);

function sizeBelow(bytes) {
    const above = algorithms.sizes.findIndex((size) => size > bytes);
    return Math.min(Math.max((above < 0 ? lastSize + 1 : above) - 1, 0), lastSize - 1);
}

// 0: no price near this size; infinite: given up.
function priceUs(setup, algorithm, bytes, alone) {
    const below = sizeBelow(bytes);
    const low = usOf(cell(setup, below, algorithm, alone));
    const high = usOf(cell(setup, below + 1, algorithm, alone));
    const [first, last] = [algorithms.sizes[below], algorithms.sizes[below + 1]];
    const line = () => Math.max(low + ((high - low) * (bytes - first)) / (last - first), 0);
    if (!(low > 0 && high > 0)) return 0;
    if (bytes <= first) return low < Infinity && high < Infinity ? line() : low;
    if (high === Infinity) return bytes < last ? (low * bytes) / first : Infinity;
    if (low === Infinity) return high * Math.max(bytes / last, 1);
    const rise = (high * algorithms.leastRise * (bytes - last)) / last;
    return bytes <= last ? line() : Math.max(line(), high + rise);
}

// How to run it there; null: nobody knows.
function wayOf(setup, algorithm, bytes, alone) {
    const below = sizeBelow(bytes);
    const low = cell(setup, below, algorithm, alone);
    const high = cell(setup, below + 1, algorithm, alone);
    const priced = (one) => usOf(one) > 0 && usOf(one) < Infinity;
    const fromBelow =
        bytes <= algorithms.sizes[below] ||
        (bytes < algorithms.sizes[below + 1] && priced(low) && !priced(high));
    return fromBelow ? low : high;
}

// What may serve a call of so many bytes.
function allowed(call, setup) {
    const set =
        call.bytes <= algorithms.smallLimit
            ? setup.small
            : call.bytes <= algorithms.middleLimit
              ? setup.middle
              : setup.large;
    if (!call.reproducible) return set & ~algorithms.whenAsked;
    const fold = set & algorithms.leftFold;
    return call.nodes > 1 && call.ranks > 2 ? fold & ~(1 << algorithms.host) : fold;
}

const within = ([min, max], value) => min <= value && (max === null || value <= max);

// The first rule that is for the call; null: none.
function findRule(call, set) {
    for (const list of table?.lists ?? []) {
        const fits =
            within(list.ranks, call.ranks) &&
            within(list.nodes, call.nodes) &&
            call.onNode.every((ranks) => within(list.onNode, ranks)) &&
            within(list.onGpu, call.onGpu ?? 1) &&
            within(list.element, call.element) &&
            (list.op === null || list.op === call.op) &&
            (list.memory === null || list.memory === (call.memory ?? "device"));
        const rule = fits && list.rules.find(({ bytes }) => within(bytes, call.bytes));
        if (rule && has(set, rule.algorithm)) return rule;
    }
    return null;
}

function least(set, usOfAlgorithm) {
    let best = null;
    let bestUs = Infinity;
    for (let algorithm = 0; algorithm < algorithms.names.length; ++algorithm) {
        const us = has(set, algorithm) ? usOfAlgorithm(algorithm) : 0;
        if (us > 0 && us < bestUs) [best, bestUs] = [algorithm, us];
    }
    return best;
}

// Sums of few algorithms are compared by what each costs alone.
function cheapest(call, setup, set) {
    const alone = call.reproducible;
    const usAt = (bytes) => (one) => priceUs(setup, one, bytes, alone);
    const best = least(set, usAt(call.bytes));
    const last = algorithms.sizes[lastSize];
    const known = call.bytes > last ? least(set, usAt(last)) : null;
    const keeps =
        best !== null &&
        known !== null &&
        algorithms.leastRise * usAt(call.bytes)(known) <= usAt(call.bytes)(best);
    return (
        (keeps ? known : best) ??
        least(set, (one) => usOf(wayOf(setup, one, call.bytes, alone))) ??
        algorithms.host
    );
}

const setupOf = (call) =>
    prices.find(({ ranks, nodes }) => ranks === call.ranks && nodes === call.nodes) ?? null;

// {algorithm, rule, way: [us, chunk, between, ways]}; null: this page has no prices for it.
function choose(call) {
    const setup = setupOf(call);
    if (setup === null) return null;
    const set = allowed(call, setup);
    const rule = findRule(call, set);
    const algorithm = rule?.algorithm ?? cheapest(call, setup, set);
    const alone = rule !== null || call.reproducible;
    return { setup, set, rule, algorithm, way: wayOf(setup, algorithm, call.bytes, alone) };
}

// Of larger vectors than have prices, segments grow as the root of the size. What has lanes keeps two of them.
function segmentsAt(segments, lanes, bytes) {
    let most = algorithms.sizes[lastSize];
    while (segments > 0 && segments * Math.min(lanes, 2) < algorithms.mostChannels && bytes / 4 >= most) {
        segments *= 2;
        most *= 4;
    }
    return segments;
}

// As hetcoll_info --explain puts it, after "served by".
function describeChoice(call, { setup, rule, algorithm, way }) {
    const [, priced, pricedBetween, packed] = way ?? [0, 0, algorithms.ring, 0];
    const power = (value) => (value === 0 ? 0 : 1 << (value - 1));
    const byLinks = (packed & 4) !== 0;
    let text = nameOf(algorithm);
    if (algorithm === algorithms.hierarchical) {
        text += `, ${nameOf(rule?.between ?? pricedBetween)} between nodes`;
        if (packed & 1) text += ", over trees on them";
        if (byLinks) text += (packed & 6) === 6 ? ", slices by flow, near owners only" : ", slices by flow";
        const pricedLanes = 1 << ((packed >> 8) & 7);
        const segments = segmentsAt(power((packed >> 3) & 7), pricedLanes, call.bytes);
        const lanes = Math.min(pricedLanes, algorithms.mostChannels / Math.max(segments, 1));
        if (segments > 0) text += `, ${segments} segment${segments === 1 ? "" : "s"}`;
        if (lanes > 1) text += ` of up to ${lanes} lanes`;
    }
    if (algorithm === algorithms.tree) {
        const [host, adapter] = [pricedBetween === 255 ? -1 : pricedBetween, packed >>> 12];
        const ofAll = ` of ${algorithms.sideParts} parts`;
        if (host > 0) text += `, ${host}${ofAll} through host memory`;
        if (adapter > 0) text += `, ${adapter}${host > 0 ? "" : ofAll} through adapters`;
    }
    if (packed & 2 && !byLinks) text += ", from node to node";
    if (packed & (1 << 11)) text += ", racks first";
    if (algorithm === algorithms.ring && byLinks) {
        text += `, ${setup.rings} ring${setup.rings === 1 ? "" : "s"} by links`;
    }
    if (has(algorithms.schedules, algorithm)) {
        const chunk = rule?.chunk || priced;
        text += `, chunks of ${Math.max(Math.floor(chunk / 16) * 16, 16)} bytes`;
    }
    return text;
}

// [{algorithm, us, givenUp}], the cheapest first; us 0: no price.
function costs(call, choice) {
    const { setup, set, algorithm: chosen, rule } = choice;
    const rows = [];
    for (let algorithm = 0; algorithm < algorithms.names.length; ++algorithm) {
        if (!has(set, algorithm)) continue;
        const compared = priceUs(setup, algorithm, call.bytes, false);
        const givenUp = compared === Infinity;
        const known = compared > 0 && !givenUp && !(rule !== null && algorithm === chosen);
        rows.push({
            algorithm,
            givenUp,
            us: known ? compared : priceUs(setup, algorithm, call.bytes, true),
        });
    }
    const rank = ({ us }) => (us > 0 ? us : Infinity);
    return rows.sort((a, b) => rank(a) - rank(b) || a.algorithm - b.algorithm);
}
