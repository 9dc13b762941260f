// Runs at the end of a page in the browser of the test: types calls into its field, points at its charts, and leaves
// what it saw in #said. `wanted` has the calls and the answers of hetcoll_info explain. `wantedEnd` is the end of the
// command for a shell; empty: only the calls and the bars are looked at.

const said = [];
const check = (what, right) => said.push(`${right ? "ok   " : "FAIL "} ${what}`);
const type = (text) => {
    byId("call").value = text;
    byId("call").dispatchEvent(new InputEvent("input"));
};
const point = (chart, x, y, kind = "pointermove") => {
    const svg = byId(chart).querySelector("svg");
    const box = svg.getBoundingClientRect();
    const Event = kind === "click" ? MouseEvent : PointerEvent;
    svg.dispatchEvent(new Event(kind, { clientX: box.left + box.width * x, clientY: box.top + box.height * y, bubbles: true }));
};

const wrong = [];
for (const block of wanted.split(/^call /m).slice(1)) {
    const [text, served, because, ...rows] = block.trim().split("\n");
    type(text);
    const shown = [...byId("answer").querySelectorAll("p")].map((line) => line.textContent);
    const { prices } = answerTo(parseCall(text));
    const isPrice = (row) => {
        const us = Number(row.split(" ")[1]);
        return prices.some((one) => nameOf(one.algorithm) === row.split(" ")[0] && Math.abs(one.us - us) <= 0.051 + us * 1e-5);
    };
    if (!shown.includes(served) || !shown.includes(because) || prices.length !== rows.length || !rows.every(isPrice)) {
        wrong.push(`${text}: ${shown.join("; ")}, not ${served}; ${because}; ${rows.join(", ")}`);
    }
    const bars = [...byId("answer").querySelectorAll(".bar")].map((one) => one.getBoundingClientRect().width);
    const longest = Math.max(...bars);
    if (bars.length !== prices.length || bars.some((width, i) => Math.abs(width / longest - prices[i].us / prices.at(-1).us) > 1e-3)) {
        wrong.push(`${text}: bars of ${bars.join(", ")} for prices of ${prices.map(({ us }) => us).join(", ")}`);
    }
}
check(`calls typed into the page are answered as hetcoll_info explain does, with bars as long as their prices: ${wrong.slice(0, 3).join("\n")}`, wrong.length === 0);

if (wantedEnd !== "") {
    type("4M on seven ranks");
    check("a wrong call is explained", byId("answer").querySelector(".error")?.textContent.includes("'seven' is not a number"));
    type("4M on 777 ranks");
    check("a call without prices names those that there are", byId("answer").textContent.includes("has no prices for 777 ranks"));
    check("and the command to ask", byId("answer").textContent.includes("hetcoll_info explain --bytes 4M --ranks 777"));
    const isRefused = (text, words) => {
        type(text);
        return byId("answer").querySelector(".error")?.textContent.includes(words);
    };
    check("another collective is refused in words", isRefused("4M bcast on 8 ranks", "answers for Allreduce alone"));
    check("and so is one by its name in MPI", isRefused("4M MPI_Iallgather on 8 ranks", "who serves MPI_Iallgather"));
    check("a unit may stand alone", parseCall("4 GB on 8 ranks").bytes === 2 ** 32 && parseCall("1.5 KiB on 8 ranks").bytes === 1536);
    check("and bytes are a unit", parseCall("8 bytes on 2 ranks").bytes === 8 && parseCall("8 on 2 ranks").bytes === 8);
    check("a unit may not make too much of a number", isRefused("4096 GB on 8 ranks", "more than a vector may have"));
    type("4M on 8 ranks");
    const shown = byId("answer").querySelector("code").textContent;
    check(`the command asks about this machine, by this table: ${shown}`, shown === `hetcoll_info explain --bytes 4M --ranks 8 ${wantedEnd}`);
    check("what is given up is explained", byId("answer").textContent.includes("given up: a job does not know this price"));
    check("the matrix has a row a GPU", byId("matrix").querySelectorAll("tr").length === data.machine.gpus.length + 1);
    check("there is a picture of the links", byId("machine").querySelector(".picture svg") !== null);

    point("curve-chart", 0.6, 0.5);
    check("pointing at the curves shows their times", !tip.hidden && tip.textContent.includes("median") && tip.textContent.includes("us"));
    check("and which of them the table takes", tip.textContent.includes("← table"));
    check("the table's choice is drawn", document.getElementById("table-choice") !== null);
    byId("setup").value = "0";
    byId("setup").dispatchEvent(new Event("change"));
    check("another setup draws other curves", byId("curve-chart").querySelectorAll("svg").length === 1);

    hideTip();
    point("region-chart", 0.5, 0.3);
    check("pointing at a region says who serves it", !tip.hidden && /sum on \d+ ranks/.test(tip.textContent));
    type("8 on 2 ranks");
    point("region-chart", 0.9, 0.3, "click");
    check("a click asks for it", byId("call").value !== "8 on 2 ranks" && byId("answer").querySelector(".served") !== null);

    check("the job's slowest call is there", byId("job").textContent.includes("Slowest calls") && byId("job").textContent.includes("two_shot"));
    check("and that nothing tells the machine of a trace", byId("job").textContent.includes("a trace does not name its machine"));
    check("and who came late", byId("job").textContent.includes("came last"));
}
const hosts = [...byId("matrix").querySelectorAll("tr")].map((row) => row.children[1]);
check("the host's column is seen without scrolling", hosts[0].textContent === "host" && hosts.every((cell) => cell.getBoundingClientRect().right <= innerWidth));
check("the title is not under the button", byId("theme").getBoundingClientRect().left >= document.querySelector("h1").getBoundingClientRect().right);
const isHatched = byId("region-chart").querySelector('[style*="#hatch-"]') !== null;
check("a map without a table is not hatched", table !== null || !isHatched);
const before = getComputedStyle(document.body).backgroundColor;
byId("theme").click();
check("dark and light differ", getComputedStyle(document.body).backgroundColor !== before);
check(`no error: ${problems.join("; ")}`, problems.length === 0);
check("nothing is wider than the window", document.documentElement.scrollWidth <= innerWidth);
document.body.replaceChildren(element("pre", { id: "said" }, said.join("\n")));
