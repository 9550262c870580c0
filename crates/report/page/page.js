const main = document.getElementById("main");
const nav = document.getElementById("nav");

// A part of the page: one sentence says how to read it.
function part(id, title, read, ...content) {
  const [long, short] = [].concat(title);
  main.append(el("section", { id }, el("h2", null, long), read ? el("p", { class: "read" }, read) : null, content));
  nav.append(el("a", { href: "#" + id }, short || long));
}
const card = (...content) => el("div", { class: "card" }, content);
const said = text => text ? el("p", { class: "said" }, text) : null;
const tile = (big, small) => el("div", { class: "tile" }, el("b", null, big), el("span", null, small));

function heading(title, command, tiles) {
  main.append(el("header", null, el("h1", null, title), el("p", { class: "command" }, command)), el("div", { class: "tiles" }, tiles));
}

// Small files are small because calls repeat: then many calls share a byte.
function density(bytes, what) {
  if (!(bytes > 0)) return "empty";
  return bytes < .01 ? many(Number((1 / bytes).toPrecision(2))) + ` ${what}s a byte` : (bytes < 10 ? Number(bytes.toPrecision(2)) : Math.round(bytes)) + ` bytes a ${what}`;
}

function flags(list) {
  const words = { bad: "Look here", warning: "Worth a look", note: "Note", good: "Good" };
  main.append(el("section", { id: "flags", style: { marginTop: "0" } }, el("ul", { class: "flags" }, list.map(flag => el("li", { class: "flag " + flag.level },
    el("h3", null, el("small", null, words[flag.level]), flag.head), el("p", null, flag.text),
    flag.help ? el("p", { class: "help" }, flag.help, flag.level === "good" ? "" : [" ", el("a", { href: "#" + flag.see, class: "see" }, "See\u00a0below.")]) : null)))));
}

// Times of kinds of calls: `~` where they were summed up while the program ran, and rounded.
const kept = ns => ns === null || ns === undefined || data.run.exact ? duration(ns) : "~" + duration(ns);
const TOGETHER = "*", together = rows => rows.some(row => row[7]) ? "*: too short to be kept apart; the table of functions has their time." : null;

function loopTree(lines) {
  // A loop and what is in it; its time is that of its calls.
  const root = { children: [], depth: -1 };
  const open = [root];
  for (const [depth, text, ns] of lines) {
    while (open[open.length - 1].depth >= depth) open.pop();
    const node = { depth, text, ns, children: [] };
    open[open.length - 1].children.push(node);
    open.push(node);
  }
  const seen = (node, into) => {
    if (node.ns !== null && node.ns !== undefined) into.set(node.text.replace(/^(\w+)\(.*?(?=( {2}at |$))/, "$1"), node.ns);
    node.children.forEach(child => seen(child, into));
    return into;
  };
  const total = node => [...seen(node, new Map()).values()].reduce((a, b) => a + b, 0);
  const timed = lines.some(line => line[2]);
  const took = ns => timed ? el("span", { class: "took" }, ns ? kept(ns) : "") : null;
  const words = text => {
    const cut = text.indexOf("  at ");
    const where = cut >= 0 ? el("span", { class: "where" }, text.slice(cut)) : null;
    const said = cut >= 0 ? text.slice(0, cut) : text;
    const call = /^(MPI_\w+)(\(.*\))(.*)$/.exec(said);
    if (call) return [el("span", { class: "dot", style: { background: colour(call[1]) } }), call[1], el("span", { class: "args" }, call[2]), el("span", { class: "often" }, call[3]), where];
    const loop = /^(loop|once)(.*)$/.exec(said);
    return loop ? [loop[1], el("span", { class: "often" }, loop[2]), where] : [said, where];
  };
  const show = (node, level) => {
    if (!node.children.length) return el("div", { class: "call" }, took(node.ns), words(node.text));
    return el("details", { open: level < 3 }, el("summary", null, took(total(node)), words(node.text)), node.children.map(child => show(child, level + 1)));
  };
  return el("div", { class: "tree" }, root.children.map(node => show(node, 0)));
}

// How far messages go: neighbours, rows of a grid, everybody.
function distances(matrix) {
  const by = new Map();
  for (const [offset, first, last, messages, bytes] of matrix.runs) {
    const row = by.get(offset) || [offset, 0, 0, 0], n = last - first + 1;
    by.set(offset, [offset, row[1] + n, row[2] + n * messages, row[3] + n * bytes]);
  }
  const rows = [...by.values()].sort((a, b) => b[3] - a[3] || Math.abs(a[0]) - Math.abs(b[0])).slice(0, 40);
  if (!rows.length) return el("div");
  const most = Math.max(1, ...rows.map(row => row[3]));
  return el("div", null, el("h3", { style: { marginTop: "4px" } }, "By distance"), table(rows, [
    { name: "to rank", left: true, get: row => row[0], show: v => v === 0 ? "itself" : v > 0 ? "+" + v : "−" + -v },
    { name: "", bar: row => row[3] / most, get: () => "" }, { name: "bytes", get: row => row[3], show: size },
    { name: "messages", get: row => row[2], show: v => v < 1e6 ? commas(v) : many(v) }, { name: "senders", get: row => row[1], show: commas },
  ]), by.size > rows.length ? said(`The 40 with the most bytes of ${commas(by.size)}.`) : null);
}

function callsPage() {
  const run = data.run;
  // Colours by time, so that what matters has the clearest ones.
  const isSetup = name => /^MPI_(Init|Finalize)/.test(name);
  data.functions.filter(row => !isSetup(row[0])).forEach(row => colour(row[0]));
  data.functions.filter(row => isSetup(row[0])).forEach(row => colours.set(row[0], "#9aa1a8"));
  const inMpi = data.functions.reduce((sum, row) => sum + (isSetup(row[0]) ? 0 : row[3] || 0), 0);
  // Of the times of all ranks together. Those of several threads at once are no parts of it.
  const ofRun = ns => ns === null || run.threads > 1 || !run.all_ns ? "-" : (run.exact ? "" : "~") + percent(ns, run.all_ns);
  const each = run.calls > 0 ? run.bytes / run.calls : 0;
  heading(run.title, run.command, [
    run.recorded_ranks < run.ranks ? tile(`${commas(run.recorded_ranks)} of ${commas(run.ranks)}`, "ranks recorded") : tile(commas(run.ranks), run.ranks === 1 ? "rank" : "ranks" + (run.host_count > 1 ? ` on ${run.host_count} hosts` : run.hosts[0] ? " on " + run.hosts[0][0] : "")),
    run.run_ns ? tile((run.complete ? "" : "≥ ") + (run.run_exact ? "" : "~") + duration(run.run_ns), "from MPI_Init to MPI_Finalize, the longest rank") : tile("-", "how long it ran is not known"),
    tile(many(run.calls), run.chosen ? "calls of MPI: not all were recorded" : "calls of MPI, every argument kept"),
    tile(size(run.bytes), "trace file, " + density(each, "call")),
    run.all_ns && run.threads > 1 ? tile(kept(inMpi), "in MPI, all threads together, without MPI_Init") : run.chosen ? tile("-", "of the time in MPI: not all calls were recorded") : run.all_ns ? tile(ofRun(inMpi), "of the time of all ranks in MPI, without MPI_Init") : tile("-", "times were not kept"),
  ]);
  flags(data.flags);

  if (data.timeline) part("timeline", "Timeline", data.timeline.read, card(timelinePicture(data.timeline)), said(data.timeline.note),
    el("p", { class: "said" }, "Drag or ", el("kbd", null, "←"), " ", el("kbd", null, "→"), " moves, ", el("kbd", null, "+"), " ", el("kbd", null, "−"), ", a double click or Ctrl with the wheel zooms, ", el("kbd", null, "0"), " shows all. Click a function below the picture to see it alone."));

  const timed = data.functions.some(row => row[3] !== null);
  const most = Math.max(1, ...data.functions.filter(row => !isSetup(row[0])).map(row => row[timed ? 3 : 1] || 0));
  data.functions.sort((a, b) => isSetup(a[0]) - isSetup(b[0]));
  part("functions", "Functions", timed ? "Time is that of all calls of a function on all ranks together: a long bar is where the time in MPI goes." : "Times were not kept: a long bar is a function that is called often.",
    card(table(data.functions, [
      { name: "function", left: true, get: row => row[0], dot: row => colour(row[0]) },
      { name: "", bar: row => isSetup(row[0]) ? 0 : (row[timed ? 3 : 1] || 0) / most, colour: row => colour(row[0]), get: () => "" },
      ...(timed ? [{ name: "time", get: row => row[3], show: kept }, { name: "of run", get: row => row[3], show: ofRun },
        { name: "mean", get: row => row[3] === null ? null : row[3] / row[1], show: kept }, { name: "longest", get: row => row[5], show: kept }] : []),
      { name: "calls", get: row => row[1], show: commas }, { name: "payload", get: row => row[2], show: size },
    ])), said((timed && run.all_ns && run.threads === 1 ? `Of run: of the times of all ranks together, ${run.run_exact ? "" : "~"}${duration(run.all_ns)}. ` : "") + (timed && !run.exact ? "~: times are right to within 1/32, shares to within 1/14. " : "") + "Payload is the data that calls give to MPI: count times size of the datatype on the sending side."));

  if (data.sites.rows.length) {
    const longest = Math.max(1, ...data.sites.rows.filter(row => !isSetup(row[0])).map(row => row[timed ? 3 : 2] || 0));
    data.sites.rows.sort((a, b) => isSetup(a[0]) - isSetup(b[0]));
    part("sites", ["Call sites", "Sites"], "The same by where in the program a call stands: which MPI_Allreduce is the slow one?", card(table(data.sites.rows, [
      { name: "at", left: true, mono: true, wrap: true, get: row => row[1] },
      { name: "function", left: true, get: row => row[0], dot: row => colour(row[0]) },
      { name: "", bar: row => isSetup(row[0]) ? 0 : (row[timed ? 3 : 2] || 0) / longest, colour: row => colour(row[0]), get: () => "" },
      ...(timed ? [{ name: "time", get: row => row[3], show: (v, row) => row[7] ? TOGETHER : kept(v) }, { name: "of run", get: row => row[3], show: (v, row) => row[7] ? TOGETHER : ofRun(v) }, { name: "longest", get: row => row[5], show: (v, row) => row[7] ? TOGETHER : kept(v) }] : []),
      { name: "calls", get: row => row[2], show: commas }, { name: "ranks", get: row => row[6] },
    ], { filter: "Filter by file, function or line" })), said(together(data.sites.rows)), said(data.sites.all > data.sites.rows.length ? `The ${data.sites.rows.length} with the most time of ${commas(data.sites.all)}; refrain stats --per site lists all.` : null));
  }

  if (data.ranks && data.ranks.bars.length) {
    const names = data.ranks.functions;
    const told = bar => bar[4].reduce((sum, ns) => sum + ns, 0);
    const start = names.findIndex(isSetup);
    const startShare = data.functions.filter(row => isSetup(row[0])).reduce((sum, row) => sum + (row[3] || 0), 0) / Math.max(1, run.all_ns || 0);
    const outside = { name: "outside MPI", colour: "var(--outside)", get: bar => bar[2] };
    // Functions of several threads at once are no parts of the time that passed.
    const setup = bar => names.reduce((sum, name, i) => sum + (isSetup(name) ? bar[4][i] : 0), 0);
    const parts = run.threads > 1 ? [outside, { name: "in MPI", colour: "var(--accent)", get: bar => Math.max(0, bar[3] - setup(bar)) }] : [outside,
      ...names.map((name, i) => ({ name, colour: colour(name), get: bar => bar[4][i] })).filter(part => !isSetup(part.name)),
      { name: "rest of MPI", colour: "var(--faint)", get: bar => Math.max(0, bar[3] - told(bar)) }];
    part("by-rank", ["Time by rank", "Ranks"], "One bar a rank: grey at the bottom is what it computes, colours are time in MPI. A rank with more grey than the others makes them wait." + (run.threads > 1 ? " Of its main thread." : ""),
      card(rankBars(data.ranks.bars, parts, { label: "Time by rank" })),
      said([data.ranks.verdict, run.exact ? "" : "Times by rank are kept in coarse steps: to within 3.2 %, and what takes less than about a sixtieth of the run on a rank counts as none.", start >= 0 ? "The time in MPI_Init is not shown" + (startShare > .5 && !run.exact ? "; it is most of the run, and times by rank are kept in steps of about a hundredth of that" : "") + "." : "", data.ranks.each > 1 ? `A bar is the mean of ${data.ranks.each} ranks.` : ""].filter(Boolean).join(" ")));
  }

  if (data.waits && data.waits.why) part("waits", "Waits", data.waits.why);
  else if (data.waits) {
    const waits = data.waits;
    const who = list => list.length ? list.map(([rank, share]) => list.length === 1 && share >= 99 ? rank : `${rank} (${share} %)`).join(", ") : "-";
    const parts = [["computing", "--outside"], ["communicating", "--accent"], ["waiting", "--bad"], ["MPI_Init", "--faint"]].map(([name, shade], i) => ({ name, colour: `var(${shade})`, get: bar => bar[2][i] }));
    const longest = Math.max(1, ...waits.rows.map(row => row[3])), onPath = Math.max(1, ...waits.path.map(row => row[4]));
    part("waits", ["Waits and the critical path", "Waits"], "Red is time that a rank waits for another one: it would be gone if the other came sooner.",
      card(rankBars(waits.ranks, parts, { label: "Computing, communicating and waiting by rank", height: 170 })),
      waits.rows.length ? [el("h3", null, "Who waits for whom"), card(table(waits.rows, [
        { name: "why", left: true, get: row => row[0] }, { name: "function", left: true, get: row => row[1], dot: row => colour(row[1]) },
        { name: "", bar: row => row[3] / longest, colour: () => "var(--bad)", get: () => "" },
        { name: "time", get: row => row[3], show: duration }, { name: "times", get: row => row[4], show: commas }, { name: "longest", get: row => row[5], show: duration },
        { name: "waiting ranks", get: row => who(row[6]) }, { name: "for rank", get: row => who(row[7]) },
        ...(waits.rows.some(row => row[2]) ? [{ name: "at", left: true, mono: true, get: row => row[2] || "?" }] : []),
      ]))] : said("No rank waits for 0.2 % of the run or more at any place."),
      waits.path.length ? [el("h3", null, "The critical path"), el("p", { class: "read" }, `What the run took as long as: ${percent(waits.path_computing, waits.path_computing + waits.path_calls)} of it is computing, ${percent(waits.path_calls, waits.path_computing + waits.path_calls)} is in MPI. Only what stands here makes the run shorter if it becomes faster.`),
        card(table(waits.path, [
          { name: "rank", get: row => row[0] }, { name: "what", left: true, get: row => row[3] ? "computing before " + row[1] : row[1], dot: row => row[3] ? "var(--outside)" : colour(row[1]) },
          { name: "", bar: row => row[4] / onPath, colour: row => row[3] ? "var(--faint)" : colour(row[1]), get: () => "" },
          { name: "time", get: row => row[4], show: duration }, { name: "of the path", get: row => row[4], show: v => percent(v, waits.path_computing + waits.path_calls) },
          ...(waits.path.some(row => row[2]) ? [{ name: "at", left: true, mono: true, get: row => row[2] || "?" }] : []),
        ]))] : null, waits.notes.map(said));
  }

  const matrix = data.matrix;
  if (matrix.runs.length || matrix.cells) part("matrix", ["Who sends to whom", "Matrix"], "Each row is a sender, each column a receiver; the stronger the colour, the more is sent. Lines along the diagonal are neighbours.",
    card(el("div", { class: "sides" }, matrixPicture(matrix), distances(matrix))), said(`${many(matrix.messages)} messages with ${size(matrix.bytes)}. Messages from one rank to another only: collective and one-sided calls are not in it.`
      + (matrix.about ? " Some amounts are estimates: of a call with very many messages some are looked at, or the size of a datatype is not known." : "") + (matrix.left_out ? ` ${commas(matrix.left_out)} messages are left out.` : "")
      + (matrix.cells ? ` A cell is ${matrix.cells.each} by ${matrix.cells.each} ranks.` : "")));

  if (data.sizes.messages.length) {
    const rows = data.sizes.messages, least = rows[0][0], last = rows[rows.length - 1][0];
    const by = new Map(rows.map(row => [row[0], row]));
    const from = bits => bits === 0 ? 0 : 2 ** (bits - 1);
    const columns = [];
    for (let bits = least; bits <= last; bits++) {
      const row = by.get(bits) || [bits, 0, 0];
      columns.push([bits === 0 ? "0 B" : size(from(bits)).replace(/\.00(?= )/, ""), row[1], `${size(from(bits))} to ${size(2 ** bits - 1)}\n${plural(row[1], "message")}\n${size(row[2])} in all`]);
    }
    const classes = data.sizes.classes, longest = Math.max(1, ...classes.map(row => row[4]));
    part("sizes", ["Message sizes", "Sizes"], "How many messages have which size, from each power of two to the next. Many small ones cost latency; few large ones cost bandwidth.", card(histogram(columns, "Messages by size")),
      classes.length ? [el("h3", null, "Time by size"), card(table(classes, [
        { name: "function", left: true, get: row => row[0], dot: row => colour(row[0]) },
        { name: "size", get: row => row[1], show: (v, row) => row[1] === row[2] ? size(row[1]) : size(row[1]) + " - " + size(row[2]) },
        { name: "", bar: row => row[4] / longest, colour: row => colour(row[0]), get: () => "" },
        ...[["time", row => row[4]], ["mean", row => row[4] / row[3]], ["longest", row => row[5]]].map(([name, get]) => ({ name, get, show: (v, row) => row[7] ? TOGETHER : kept(v) })), { name: "calls", get: row => row[3], show: commas },
      ])), said(together(classes))] : null);
  }

  if (data.loops.why) part("loops", "Loops", data.loops.why);
  else if (data.loops.kinds.length) part("loops", "Loops", "What the program does, as loops in loops: how often, with which arguments, from which line. " + (timed ? "Times are those of the call" + (data.loops.by_site ? " " : "") + (data.loops.by_site ? "sites" : "ed functions") + " on all ranks together." : ""),
    data.loops.kinds.map(kind => [data.loops.kinds.length > 1 ? el("h3", null, /^\d/.test(kind.ranks) && kind.ranks.includes(",") || kind.ranks.includes("-") ? "Ranks " + kind.ranks : "Rank " + kind.ranks, kind.thread ? ", thread " + kind.thread : "") : null,
      card(el("ul", { class: "heading" }, kind.heading.slice(data.loops.kinds.length > 1 ? 1 : 0).filter(line => !line.startsWith("red flag")).map(line => el("li", null, line))), loopTree(kind.lines))]));

  if (data.kinds.count > 0) {
    const kinds = data.kinds;
    const map = kinds.row ? kindMap(kinds, run.ranks) : null;
    part("kinds", ["Kinds of ranks", "Kinds"], "Ranks of one colour make the same calls in the same order; only numbers such as peers and sizes differ.", card(el("div", { class: "two" }, map ? map.canvas : el("p", { class: "said" }, "Kinds change from rank to rank more often than a map can show."),
      table(kinds.described.map((row, i) => [i, ...row]), [
        { name: "kind", left: true, get: row => row[0], show: v => v + 1, dot: row => map ? map.colours(row[0]) : "var(--faint)" },
        { name: "ranks", left: true, wrap: true, get: row => row[1] }, { name: "number", get: row => row[2], show: commas }, { name: "calls each", get: row => row[4], show: (_, row) => fromTo(row[3], row[4], commas) }, { name: "payload each", get: row => row[6], show: (_, row) => fromTo(row[5], row[6], size) },
      ]))), said(kinds.count === 1 ? "All ranks do the same: that is why the file is small." : kinds.count > kinds.described.length ? `${commas(kinds.count)} kinds in all.` : null), said(map && kinds.count > KIND_COLOURS ? "Grey: all other kinds." : null));
  }

  part("run", "What ran", null, card(el("dl", { class: "facts" }, [
    ["command", run.command], ["MPI library", `${run.library} (${run.abi})`], ["started", run.started],
    ["hosts", run.hosts.map(([name, ranks]) => `${name} (${plural(ranks, "rank")})`).join(", ") + (run.host_count > run.hosts.length ? ` and ${run.host_count - run.hosts.length} more` : "")],
    ...run.cores.map((line, i) => [i ? "" : "cores", line]),
    ["threads", run.threads > 1 ? `up to ${run.threads} a rank` : null],
    ["file", `${run.file}, ${commas(run.bytes)} bytes, ${run.complete ? "complete" : "partial: the run did not finish"}`],
    ["folded into", `${plural(run.symbols, "different call")} in ${plural(run.structures, "structure")}, for ${plural(data.kinds.count, "kind")} of ranks`],
    ["times", run.times],
    ...run.kept.map((line, i) => [i ? "" : "kept", line]), ...run.notes.map((line, i) => [i ? "" : "notes", line]),
  ].filter(([, text]) => text !== null).map(([name, text]) => [el("dt", null, name), el("dd", null, text)]))));
}

function footer() {
  main.append(el("footer", null, "Made by Refrain from " + data.run.file + ". This page is one file: it loads nothing and sends nothing. Keys: ", el("kbd", null, "Tab"), " goes through it, ", el("kbd", null, "d"), " switches light and dark."));
}

if (data.kind === "memory") memoryPage(); else callsPage();
footer();
addEventListener("keydown", event => {
  if (event.key === "d" && !event.ctrlKey && !event.metaKey && !event.altKey && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) setTheme(!isDark(), true);
});
// Paper is light.
let wasDark = false;
addEventListener("beforeprint", () => { wasDark = isDark(); if (wasDark) setTheme(false, false); document.querySelectorAll("details").forEach(d => { d.open = true; }); redraws.forEach(redraw => redraw()); });
addEventListener("afterprint", () => { if (wasDark) setTheme(true, false); });
