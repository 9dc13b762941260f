// The sections of the page, from what hetcoll_info or hetcoll_tune has found.

const byId = (id) => document.getElementById(id);

function missing(id) {
    byId(id).querySelector(".missing").hidden = false;
    byId(id).querySelector(".content").hidden = true;
}

const machineName = (machine) => machine.name || "this machine";

function showHead() {
    const machine = data.machine;
    const measured = data.measurements.map((one) => one.machine).join(", ");
    byId("machine-name").textContent = machine ? ` on ${machineName(machine)}` : measured ? ` on ${measured}` : "";
    document.title = `hetcoll${byId("machine-name").textContent}`;
    const facts = Object.entries(machine?.fingerprint ?? {}).map(([name, value]) => `${name} ${value}`);
    const ofTable = table?.machine === null ? ", which a job ignores" : table?.machine ? ` for ${table.machine}` : "";
    facts.push(table ? `table ${table.path}${ofTable}` : "no tuning table");
    byId("facts").textContent = [...facts, `hetcoll ${data.version}`].join(" · ");
    const root = document.documentElement;
    const setTheme = (theme) => {
        root.dataset.theme = theme;
        root.style.colorScheme = theme;
    };
    setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    byId("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
}

function showMatrix({ gpus, columns }) {
    const rates = gpus.flatMap(({ routes, host }) => [host, ...routes.map((route) => route?.[1] ?? 0)]);
    const positive = rates.filter((rate) => rate > 0);
    const heat = logScale([Math.min(...positive), Math.max(...positive)], [8, 75]);
    const rateCell = (word, gbps) =>
        element(
            "td",
            gbps > 0 ? { style: `background:color-mix(in oklab, var(--hot) ${heat(gbps).toFixed(0)}%, var(--panel))` } : {},
            gbps > 0 ? String(gbps) : "–",
            element("small", {}, word),
        );
    const head = element("tr", {}, ...["", "host", ...columns].map((name) => element("th", {}, name)));
    const rows = gpus.map((gpu) =>
        element(
            "tr",
            { title: `${gpu.name} ${gpu.model} ${gpu.bus}${gpu.numa === null ? "" : `, NUMA ${gpu.numa}`}` },
            element("th", {}, gpu.name),
            rateCell("", gpu.host),
            ...gpu.routes.map((route) => (route === null ? element("td", {}, "·") : rateCell(...route))),
        ),
    );
    byId("matrix").append(element("table", {}, head, ...rows));
}

const givenUpWords = "given up";
const whatGivenUpMeans =
    "given up: a job does not know this price. It stops pricing an algorithm once another one is clearly faster, and does not choose it by price.";

// As long as its part of the whole, whatever the width.
const bar = (part, colour) =>
    element("span", { class: "track" }, element("span", { class: "bar", style: `width:${(100 * part).toFixed(2)}%;background:${colour}` }));

// The answer to --explain.
function explain(text) {
    const answer = byId("answer");
    let call;
    try {
        call = parseCall(text);
    } catch (problem) {
        if (!(problem instanceof CallError)) throw problem;
        answer.replaceChildren(element("p", { class: "error" }, problem.message));
        return;
    }
    const found = answerTo(call);
    const command = element("p", {}, "In a shell: ", element("code", {}, commandOf(call)));
    if (found === null) {
        const there = setups.map(({ ranks, nodes }) => (nodes === 1 ? `${ranks}` : `${ranks} on ${nodes} nodes`)).join(", ");
        const why = `This page has no prices for ${call.ranks} ranks on ${call.nodes} node${call.nodes === 1 ? "" : "s"}, only for ${there} ranks.`;
        answer.replaceChildren(element("p", { class: "error" }, why), command);
        return;
    }
    const { algorithm: serves, served, because, note, prices } = found;
    const most = prices.at(-1)?.us;
    const rows = prices.map(({ algorithm, us, givenUp }) => [
        nameOf(algorithm),
        printUs(us),
        bar(us / most, colourOf(nameOf(algorithm))),
        algorithm === serves ? "serves the call" : givenUp ? givenUpWords : "",
    ]);
    answer.replaceChildren(
        element("p", {}, printCall(call)),
        element("p", { class: "served" }, swatch(nameOf(serves)), "served by ", element("b", {}, served)),
        element("p", {}, `because ${because}`),
        ...(note === "" ? [] : [element("p", {}, `table: ${note}`)]),
        tableOf(["algorithm", "price", "", ""], rows, "prices"),
        ...(rows.some((row) => row.at(-1) === givenUpWords) ? [element("p", {}, element("small", {}, whatGivenUpMeans))] : []),
        command,
    );
}

const largestShown = 2 ** 30;
const floatSum = { element: 4, op: "sum", memory: "device", reproducible: false };

// Who serves sums of floats, from 1 byte to 1 GiB: [{from, to, algorithm, byRule}].
function servedRanges({ ranks, nodes }) {
    const shown = [];
    for (const [from, algorithm, byRule] of answerTo({ ...floatSum, ranks, nodes, bytes: 1 }).ranges) {
        const last = shown.at(-1);
        if (from >= largestShown) break;
        if (last?.algorithm === algorithm && last.byRule === byRule) continue;
        if (last) last.to = from;
        shown.push({ from, to: largestShown, algorithm, byRule });
    }
    return shown;
}

function hatch(svg, names) {
    const all = shape("defs");
    for (const name of names) {
        const pattern = shape("pattern", { id: `hatch-${name}`, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
        pattern.append(
            shape("rect", { width: 7, height: 7, style: `fill:${colourOf(name)}`, opacity: 0.45 }),
            shape("rect", { width: 3.5, height: 7, style: `fill:${colourOf(name)}` }),
        );
        all.append(pattern);
    }
    svg.append(all);
}

function showRegions() {
    const host = byId("region-chart");
    const rowHeight = Math.min(34, Math.max(16, 360 / setups.length));
    const height = frame.top + frame.bottom + rowHeight * setups.length;
    const rows = setups.map((setup, i) => ({ setup, top: frame.top + rowHeight * (setups.length - 1 - i), ranges: servedRanges(setup) }));
    const names = [...new Set(rows.flatMap(({ ranges }) => ranges.map(({ algorithm }) => nameOf(algorithm))))];
    const yTicks = rows.map(({ setup, top }) => ({
        place: top + rowHeight / 2,
        label: setup.nodes === 1 ? `${setup.ranks}` : `${setup.ranks} / ${setup.nodes}`,
    }));
    const { svg, x, cursor } = chart(host, { xs: [1, largestShown], yTicks, height, yTitle: "ranks / nodes" });
    if (table !== null) hatch(svg, names);
    byId("region-words").textContent =
        table === null
            ? "Sums of floats in device memory, by price: there is no tuning table. Click for details."
            : "Sums of floats in device memory. Solid: chosen by a rule of the tuning table. Hatched: chosen by price. Click for details.";
    for (const { top, ranges } of rows) {
        for (const { from, to, algorithm, byRule } of ranges) {
            const name = nameOf(algorithm);
            svg.append(shape("rect", {
                x: x(from), y: top + 1, width: x(to) - x(from), height: rowHeight - 2,
                style: `fill:${byRule || table === null ? colourOf(name) : `url(#hatch-${name})`}`,
            }));
        }
    }
    svg.append(cursor);
    const callAt = (event) => {
        const place = placeIn(svg, event);
        const row = rows.find(({ top }) => place.y >= top && place.y < top + rowHeight);
        const bytes = Math.round(x.back(place.x));
        if (!row || bytes < 1 || bytes > largestShown) return null;
        const rounded = bytes >= 1024 ? Math.round(bytes / 1024) * 1024 : bytes;
        const { ranks, nodes } = row.setup;
        return `${printBytes(rounded)} float sum on ${ranks} ranks${nodes > 1 ? ` of ${nodes} nodes` : ""}`;
    };
    svg.addEventListener("pointermove", (event) => {
        const text = callAt(event);
        cursor.setAttribute("visibility", text ? "visible" : "hidden");
        if (text === null) return hideTip();
        const at = placeIn(svg, event).x;
        cursor.setAttribute("x1", at);
        cursor.setAttribute("x2", at);
        const { served, because } = answerTo(parseCall(text));
        showTip(event, element("div", {}, text), element("b", {}, served), element("div", {}, `because ${because}`));
    });
    svg.addEventListener("pointerleave", hideTip);
    svg.addEventListener("click", (event) => {
        const text = callAt(event);
        if (text === null) return;
        byId("call").value = text;
        explain(text);
        byId("explain").scrollIntoView({ behavior: "smooth" });
    });
    legend(host, names);
}

function showCurves(setup) {
    const host = byId("curve-chart");
    const { sizes, curves } = setup;
    const times = curves.flatMap(({ us }) => us.filter((one) => one !== null));
    const xs = [sizes[0] || 1, sizes.at(-1) > (sizes[0] || 1) ? sizes.at(-1) : 2 * (sizes[0] || 1)];
    const ys = [Math.min(...times) / 1.3, Math.max(...times) * 1.3];
    const y = logScale(ys, [frame.height - frame.bottom, frame.top]);
    const yTicks = powers(10, ys).map((us) => ({ place: y(us), label: printUs(us).replace(".0", "") }));
    const { svg, x, cursor } = chart(host, { xs, ys: y, yTicks, yTitle: "median time" });
    const path = (points, attributes) => {
        const line = points.map(([bytes, us], i) => `${i === 0 ? "M" : "L"}${x(bytes || 1).toFixed(1)} ${y(us).toFixed(1)}`).join("");
        svg.append(shape("path", { d: line, fill: "none", ...attributes }));
    };
    const chosen = setup.chosen.map((curve) => (curve === null ? null : curves[curve]));
    const envelope = sizes.flatMap((size, s) => (chosen[s] ? [[size, chosen[s].us[s]]] : []));
    if (envelope.length > 0) {
        path(envelope, { id: "table-choice", style: "stroke:var(--ink)", "stroke-width": 9, "stroke-linecap": "round", "stroke-linejoin": "round", opacity: 0.18 });
    }
    for (const curve of curves) {
        const points = sizes.flatMap((size, s) => (curve.us[s] === null ? [] : [[size, curve.us[s]]]));
        const dash = curve.name !== nameOf(curve.algorithm) ? { "stroke-dasharray": "6 3" } : {};
        path(points, { style: `stroke:${colourOf(nameOf(curve.algorithm))}`, "stroke-width": 2, ...dash });
    }
    const leastUs = (bytes) => setup.onGpu === 1 && answerTo({ ...setup, bytes })?.prices.find(({ givenUp }) => !givenUp)?.us;
    const least = sizes.flatMap((bytes) => {
        const us = leastUs(bytes || 1);
        return us ? [[bytes, Math.min(Math.max(us, ys[0]), ys[1])]] : [];
    });
    if (least.length > 1) path(least, { style: "stroke:var(--soft)", "stroke-width": 1.5, "stroke-dasharray": "2 4" });
    svg.append(cursor);
    svg.addEventListener("pointermove", (event) => {
        const place = placeIn(svg, event);
        const distance = (size) => Math.abs(x(size || 1) - place.x);
        const size = sizes.reduce((best, one) => (distance(one) < distance(best) ? one : best));
        const s = sizes.indexOf(size);
        const rows = curves.filter(({ us }) => us[s] !== null).sort((a, b) => a.us[s] - b.us[s]);
        cursor.setAttribute("x1", x(size || 1));
        cursor.setAttribute("x2", x(size || 1));
        cursor.setAttribute("visibility", "visible");
        showTip(
            event,
            element("div", {}, `${printBytes(size)} bytes`),
            tableOf(["", "median", ""], rows.map((curve) => [
                element("span", {}, swatch(nameOf(curve.algorithm)), curve.name),
                printUs(curve.us[s]),
                curve === chosen[s] ? "← table" : `${(curve.us[s] / rows[0].us[s]).toFixed(2)}×`,
            ])),
        );
    });
    svg.addEventListener("pointerleave", () => {
        cursor.setAttribute("visibility", "hidden");
        hideTip();
    });
    const extra = [];
    if (envelope.length > 0) extra.push(element("span", {}, "wide line: the table's choice"));
    if (least.length > 1) extra.push(element("span", {}, "dotted: the lowest price"));
    legend(host, [...new Set(curves.map(({ algorithm }) => nameOf(algorithm)))], extra);
    showVerdict(setup, chosen);
}

// How far the table is from the fastest of what was measured.
function showVerdict({ sizes, curves }, chosen) {
    let [worst, at, count] = [0, null, 0];
    sizes.forEach((size, s) => {
        if (!chosen[s]) return;
        ++count;
        const fastest = Math.min(...curves.map(({ us }) => us[s] ?? Infinity));
        const loss = chosen[s].us[s] / fastest;
        if (loss > worst) [worst, at] = [loss, size];
    });
    byId("verdict").textContent =
        count === 0
            ? "There is no tuning table with a rule for these calls."
            : `At ${count} sizes, the table's choice takes at most ${worst.toFixed(2)} times as long as the fastest algorithm (at ${printBytes(at)} bytes), by median.`;
}

function showMeasured() {
    const setups = data.measurements.flatMap(({ setups: all }) => all);
    const select = byId("setup");
    setups.forEach(({ ranks, nodes, onGpu }, i) => {
        const where = `${ranks} ranks on ${nodes} node${nodes === 1 ? "" : "s"}${onGpu > 1 ? `, ${onGpu} on a GPU` : ""}`;
        select.append(element("option", { value: i }, where));
    });
    const largest = setups.reduce((best, { ranks }, i) => (ranks > setups[best].ranks ? i : best), 0);
    select.value = String(largest);
    select.addEventListener("change", () => showCurves(setups[Number(select.value)]));
    showCurves(setups[largest]);
}

function barTable(title, label, rows, labelOf, colour) {
    const all = rows.reduce((sum, { s }) => sum + s, 0) || 1;
    return element(
        "div",
        {},
        element("h3", {}, title),
        tableOf([label, "calls", "time", ""], rows.map((row) => [
            labelOf(row),
            row.calls.toLocaleString("en"),
            `${((100 * row.s) / all).toFixed(1)} %`,
            bar(row.s / all, colour(row)),
        ])),
    );
}

function showLate(job) {
    if (job.gatherings === 0) {
        return element("p", {}, "Late ranks are not known: to find them takes the traces of all ranks of a communicator, and clocks that agree.");
    }
    const rows = [...job.late].sort((a, b) => b.cost_s - a.cost_s).slice(0, 32);
    return element(
        "div",
        {},
        element("p", {}, `The traces have all ranks of ${job.gatherings.toLocaleString("en")} calls. In each of them, the others waited for the rank that came last.`),
        tableOf(
            ["rank", "came last", "others waited, in total", "longest wait", "waited itself", "of its time in calls"],
            rows.map((row) => [
                `rank ${row.rank}`,
                row.times.toLocaleString("en"),
                printUs(row.cost_s * 1e6),
                printUs(row.worst_us),
                printUs(row.waited_s * 1e6),
                `${row.in_calls_s > 0 ? ((100 * row.waited_s) / row.in_calls_s).toFixed(1) : "0.0"} %`,
            ]),
        ),
    );
}

const tagged = (text, { tag }) => (tag === "" ? text : `${text} (${tag})`);

function showJob(job) {
    const staged = Object.entries(job.staged).map(([why, calls]) => `${calls} calls staged: ${why}`);
    const accent = () => "var(--accent)";
    const head =
        `${job.calls.toLocaleString("en")} calls of ${job.ranks} ranks in ${job.s.toFixed(3)} s; on average, a rank spent ` +
        `${job.in_calls_s.toFixed(3)} s in them (${job.in_calls_percent.toFixed(1)} %)`;
    const here = data.machine ? `: nothing tells whether these calls ran on ${machineName(data.machine)}` : "";
    const notes = [...job.notes, `a trace does not name its machine${here}`];
    byId("job").querySelector(".content").append(
        element("p", {}, [head, ...staged, ...(job.failed ? [`${job.failed} failed`] : [])].join(" · ")),
        ...notes.map((note) => element("p", { class: "note" }, `Note: ${note}.`)),
        element(
            "div",
            { class: "columns" },
            barTable("By algorithm", "algorithm", job.by_algorithm, ({ name }) => name, ({ name }) => colourOf(name)),
            barTable("By path", "path", job.by_path, ({ name }) => name, accent),
            barTable("By size", "at most", job.by_size, ({ bytes }) => printBytes(bytes), accent),
        ),
        element("h3", {}, "Who came late"),
        showLate(job),
        element("h3", {}, "Slowest calls"),
        tableOf(
            ["rank", "after", "call", "bytes", "algorithm", "path", "took", "of which waiting"],
            job.slowest.map((call) => [
                `rank ${call.rank}`, `${call.at_s.toFixed(3)} s`, tagged(`${call.call}, ${call.ranks} ranks`, call), printBytes(call.bytes),
                call.algorithm, call.path, printUs(call.us), call.wait_us === null ? "?" : printUs(call.wait_us),
            ]),
        ),
        element("h3", {}, "All kinds of calls"),
        tableOf(
            ["call", "at most", "memory", "algorithm", "path", "calls", "slowest", "time"],
            job.by_kind.map((row) => [
                tagged(row.call, row), printBytes(row.most), row.memory, row.algorithm, row.path, row.calls.toLocaleString("en"),
                printUs(row.worst_us), `${row.s.toFixed(3)} s`,
            ]),
        ),
    );
}

showHead();
if (data.machine) showMatrix(data.machine);
else missing("machine");
if (setups.length > 0) {
    const call = byId("call");
    const { ranks, nodes } = setups.findLast((setup) => setup.nodes === 1) ?? setups[0];
    call.value = `4M float sum on ${ranks} ranks${nodes > 1 ? ` of ${nodes} nodes` : ""}`;
    call.addEventListener("input", () => explain(call.value));
    explain(call.value);
    showRegions();
} else {
    missing("explain");
    missing("regions");
}
if (data.measurements.length > 0) showMeasured();
else missing("measured");
if (data.job) showJob(data.job);
else missing("job");
