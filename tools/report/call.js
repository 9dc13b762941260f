// A call as people type it: "4M float sum on 8 ranks of 2 nodes", or with hetcoll_info's options,
// "--bytes 4M --ranks 8 --nodes 2".

const elementBytes = {
    char: 1, int8: 1, uint8: 1, half: 2, bfloat16: 2, int16: 2, uint16: 2, float: 4, float32: 4,
    int: 4, uint: 4, int32: 4, uint32: 4, double: 8, float64: 8, long: 8, ulong: 8, int64: 8,
    uint64: 8, complex: 8,
};
const otherOps = new Set(["other", "prod", "max", "min", "band", "bor", "bxor", "land", "lor", "lxor"]);
const fillers = new Set(["a", "an", "the", "on", "of", "in", "with", "and", "bytes", "byte", "allreduce", "mpi_allreduce", "call", "each", "hetcoll_info", "explain"]);
const otherCollectives = /^(mpi_)?i?(bcast|broadcast|reduce|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce_scatter(_block)?|reduce_local|scan|exscan|barrier|neighbor_\w+)$/;
const units = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

function parseBytes(word) {
    const match = /^(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?$/i.exec(word);
    const bytes = match ? Math.round(Number(match[1]) * units[match[2].toLowerCase()]) : 0;
    return bytes >= 1 && bytes <= data.mostBytes ? bytes : null;
}

function printBytes(bytes) {
    let unit = 0;
    while (unit < 3 && bytes !== 0 && bytes % 1024 === 0) {
        bytes /= 1024;
        ++unit;
    }
    return `${bytes}${["", "K", "M", "G"][unit]}`;
}

class CallError extends Error {}

const optionOf = {
    "--ranks": (call, word) => { call.ranks = count("--ranks", word); },
    "--nodes": (call, word) => { call.nodes = count("--nodes", word); },
    "--ranks-per-node": (call, word) => { call.each = count("--ranks-per-node", word); },
    "--element": (call, word) => {
        const known = [...new Set(data.kinds?.map(({ element }) => element))];
        call.element = Number(word);
        if (!known.includes(call.element)) throw new CallError(`--element '${word ?? ""}' is not one of ${known.join(", ")}`);
    },
    "--bytes": (call, word) => {
        call.bytes = parseBytes(word ?? "");
        if (call.bytes === null) throw new CallError(`--bytes '${word ?? ""}' is no size: write 4096, 64K or 4M`);
    },
    "--op": (call, word) => { call.op = word === "sum" ? "sum" : "other"; },
};

function count(what, word) {
    if (!/^[1-9]\d{0,6}$/.test(word ?? "")) throw new CallError(`${what} '${word ?? ""}' is not a number of 1 or more`);
    return Number(word);
}

// Says what is wrong by a CallError.
function parseCall(text) {
    const call = { bytes: null, ranks: null, nodes: 1, each: null, element: 4, op: "sum", memory: "device", reproducible: false };
    const words = text.trim().split(/[\s,]+/).filter((word) => word !== "");
    for (let i = 0; i < words.length; ++i) {
        const word = words[i].toLowerCase();
        const next = (words[i + 1] ?? "").toLowerCase();
        if (word in optionOf) {
            optionOf[word](call, words[++i]);
        } else if (word === "reproducible" || word === "--reproducible") {
            call.reproducible = true;
        } else if (word === "mixed" || word === "--mixed") {
            call.memory = "mixed";
        } else if (/^ranks?$|^gpus?$/.test(next)) {
            call.ranks = count("ranks", word);
            ++i;
        } else if (/^nodes?$/.test(next)) {
            call.nodes = count("nodes", word);
            ++i;
        } else if (word in elementBytes) {
            call.element = elementBytes[word];
        } else if (word === "sum" || otherOps.has(word)) {
            call.op = word === "sum" ? "sum" : "other";
        } else if (parseBytes(word) !== null) {
            const unit = /^[\d.]+$/.test(word) && /^(k|m|g|t)?(i?b)?$/i.test(next) ? next : "";
            call.bytes = parseBytes(word + unit);
            i += unit === "" ? 0 : 1;
            if (call.bytes === null) throw new CallError(`'${words[i - 1]} ${words[i]}' is more than a vector may have`);
        } else if (otherCollectives.test(word)) {
            throw new CallError(`this page answers for Allreduce alone: hetcoll_info explain --collective says who serves ${words[i]}`);
        } else if (!fillers.has(word)) {
            throw new CallError(`'${words[i]}' is unknown: write a call such as 4M float sum on 8 ranks of 2 nodes`);
        }
    }
    if (call.bytes === null) throw new CallError("how large a vector? write a size such as 4M");
    if (call.ranks === null && call.each !== null) call.ranks = call.each * call.nodes;
    if (call.ranks === null) throw new CallError("on how many ranks? write for example 8 ranks");
    if (call.ranks < call.nodes) {
        throw new CallError(`${call.ranks} ranks cannot be on ${call.nodes} nodes: each node has one at least`);
    }
    return call;
}

// A word for a shell.
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// The same call for a shell, on the machine and by the table that this page is about.
function commandOf(call) {
    const { topology, table: by } = data;
    return (
        `hetcoll_info explain --bytes ${printBytes(call.bytes)} --ranks ${call.ranks}` +
        (call.nodes > 1 ? ` --nodes ${call.nodes}` : "") +
        (call.op === "sum" ? "" : " --op other") +
        (call.element === 4 ? "" : ` --element ${call.element}`) +
        (call.memory === "mixed" ? " --mixed" : "") +
        (call.reproducible ? " --reproducible" : "") +
        (topology === null ? "" : ` --topology${topology === "" ? "" : ` ${quoted(topology)}`}`) +
        (by === null ? "" : ` --table ${quoted(by.path)}${by.asked === "" ? "" : ` --machine ${quoted(by.asked)}`}`) +
        (data.smallLimit === data.usualSmallLimit ? "" : ` --small-limit ${data.smallLimit}`)
    );
}

const printCall = (call) =>
    `${call.bytes} bytes, ${call.op === "sum" ? "sum" : "another op"} of ${call.element}-byte elements, ` +
    `${call.ranks} ranks on ${call.nodes} node${call.nodes === 1 ? "" : "s"}` +
    `${call.memory === "mixed" ? ", some with host memory" : ""}${call.reproducible ? ", reproducible" : ""}`;
