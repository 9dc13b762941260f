// Runs at the end of a page in the browser of the test: types calls into its field, points at its charts, and leaves
// what it saw in #said. `wanted` has the calls, a line each, `wantedEnd` the options of the command for a shell.

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

for (const text of wanted.split("\n").filter((line) => line !== "")) {
    type(text);
    const answer = byId("answer");
    said.push(`call ${text}`, `served ${answer.querySelector(".served b")?.textContent ?? answer.textContent}`);
    const call = parseCall(text);
    const choice = choose(call);
    said.push(`because ${[...answer.querySelectorAll("p")].find((p) => p.textContent.startsWith("because"))?.textContent.slice(8)}`);
    for (const { algorithm, us } of costs(call, choice)) if (us > 0) said.push(`${nameOf(algorithm)} ${us.toFixed(1)}`);
}

said.push("checks");
type("4M on seven ranks");
check("a wrong call is explained", byId("answer").querySelector(".error")?.textContent.includes("'seven' is not a number"));
type("4M on 777 ranks");
check("a call without prices names those that there are", byId("answer").textContent.includes("has no prices for 777 ranks"));
check("and the command to ask", byId("answer").textContent.includes("hetcoll_info explain --bytes 4M --ranks 777"));
type("4M on 8 ranks");
const shown = byId("answer").querySelector("code").textContent;
check(`the command asks about this machine, by this table: ${shown}`, shown === `hetcoll_info explain --bytes 4M --ranks 8 ${wantedEnd}`);
const givenUp = byId("answer").textContent.includes(" given up");
check("what is given up is explained", givenUp && byId("answer").textContent.includes("a job would not know this price"));
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
check("and who came late", byId("job").textContent.includes("came last"));
const before = getComputedStyle(document.body).backgroundColor;
byId("theme").click();
check("dark and light differ", getComputedStyle(document.body).backgroundColor !== before);
check(`no error: ${problems.join("; ")}`, problems.length === 0);
check("nothing is wider than the window", document.documentElement.scrollWidth <= innerWidth);
document.body.replaceChildren(element("pre", { id: "said" }, said.join("\n")));
