// What all charts share: elements, colours, logarithmic axes, and the note beside the pointer.

function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
}

function shape(tag, attributes = {}, text = "") {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
}

// One colour an algorithm, wherever it is shown: light and dark.
const colours = {
    recursive_doubling: ["#7b4fa6", "#b894e0"], recursive_multiplying: ["#a0568f", "#dd92cb"],
    rabenseifner: ["#7d4a3d", "#c08d7f"], radix3: ["#a3622a", "#e0a068"],
    radix4: ["#b58900", "#e3c04f"], radix8: ["#8a8a1f", "#cfcf63"],
    ring: ["#1f6fb4", "#62aef0"], one_shot: ["#c4519f", "#f08fcf"], two_shot: ["#c62828", "#f0706f"],
    leader: ["#d9730d", "#ffab5e"], tree: ["#2e8b3d", "#6fcf7f"], hierarchical: ["#128a99", "#4fd0de"],
    host: ["#6b6b6b", "#a8a8a8"], copy_in: ["#55812a", "#a5cf72"], ordered: ["#303030", "#e0e0e0"],
    in_network: ["#393b9a", "#8f92f0"], weighted: ["#4b6b1f", "#93b862"],
};
function colourOf(name) {
    const [light, dark] = colours[name] ?? ["#59636e", "#9aa7b4"];
    return `light-dark(${light}, ${dark})`;
}
const swatch = (name) => element("span", { class: "swatch", style: `background:${colourOf(name)}` });

function printUs(us) {
    if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
    if (us >= 1e3) return `${(us / 1e3).toFixed(1)} ms`;
    return `${us.toFixed(1)} us`;
}

// From [least, most] to [from, to].
function logScale([least, most], [from, to]) {
    const [low, span] = [Math.log2(least), Math.log2(most / least) || 1];
    const scale = (value) => from + ((Math.log2(value) - low) / span) * (to - from);
    scale.back = (place) => 2 ** (low + ((place - from) / (to - from)) * span);
    return scale;
}

function powers(base, [least, most], step = 1) {
    const ticks = [];
    const first = Math.ceil(Math.log(least) / Math.log(base) - 1e-9);
    for (let power = first; base ** power <= most * 1.0001; power += step) ticks.push(base ** power);
    return ticks;
}

const frame = { width: 1000, height: 420, left: 90, right: 20, top: 15, bottom: 45 };

// An empty chart with axes; x: bytes. `rows`: [{label, middle}] for y, or a scale of microseconds.
function chart(host, { xs, ys, yTicks, height = frame.height, yTitle }) {
    const svg = shape("svg", { viewBox: `0 0 ${frame.width} ${height}`, role: "img" });
    const bottom = height - frame.bottom;
    const x = logScale(xs, [frame.left, frame.width - frame.right]);
    for (const bytes of powers(2, xs, Math.log2(xs[1] / xs[0]) > 16 ? 2 : 1)) {
        svg.append(
            shape("line", { class: "grid", x1: x(bytes), x2: x(bytes), y1: frame.top, y2: bottom }),
            shape("text", { x: x(bytes), y: bottom + 18, "text-anchor": "middle" }, printBytes(bytes)),
        );
    }
    svg.append(shape("text", { x: (frame.left + frame.width) / 2, y: height - 6, "text-anchor": "middle" }, "vector size in bytes"));
    for (const { place, label } of yTicks) {
        svg.append(
            shape("line", { class: "grid", x1: frame.left, x2: frame.width - frame.right, y1: place, y2: place }),
            shape("text", { x: frame.left - 8, y: place + 4, "text-anchor": "end" }, label),
        );
    }
    svg.append(shape("text", { transform: `translate(14 ${(frame.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yTitle));
    const cursor = shape("line", { class: "cursor", y1: frame.top, y2: bottom, visibility: "hidden" });
    svg.append(cursor);
    host.replaceChildren(svg);
    return { svg, x, y: ys, bottom, cursor };
}

function legend(host, names, extra = []) {
    host.append(element("div", { class: "legend" }, ...names.map((name) => element("span", {}, swatch(name), name)), ...extra));
}

// Where the pointer is, in the chart's own units.
function placeIn(svg, event) {
    const box = svg.getBoundingClientRect();
    const scale = frame.width / box.width;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
}

const tip = document.getElementById("tip");
function showTip(event, ...children) {
    tip.replaceChildren(...children);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = event.clientX + 16 + width > innerWidth ? event.clientX - 16 - width : event.clientX + 16;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${Math.max(Math.min(event.clientY + 12, innerHeight - height - 4), 4)}px`;
}
const hideTip = () => { tip.hidden = true; };

function tableOf(head, rows, kind = "") {
    const line = (cells, tag) => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
    return element("div", { class: `wide ${kind}` }, element("table", {}, line(head, "th"), ...rows.map((cells) => line(cells, "td"))));
}
