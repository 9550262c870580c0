// The page of a trace of memory references.
function memoryPage() {
  const run = data.run, walk = data.walk;
  const each = run.references > 0 ? run.bytes / run.references : 0;
  heading(run.title, run.command, [
    tile(many(run.references), (run.fetches ? "loads, stores and fetches of instructions" : "loads and stores") + ", every one kept"),
    tile(size(run.bytes), "trace file, " + density(each, "reference")),
    tile(commas(run.threads), (run.threads === 1 ? "thread" : "threads") + (run.ranks > 1 ? ` of ${commas(run.ranks)} processes` : "")),
    tile(size(run.loaded + run.stored), "moved: " + size(run.loaded) + " in, " + size(run.stored) + " out"),
    walk ? tile((walk.bounded ? "≥ " : "") + size(walk.touched), "of memory touched" + (run.ranks > 1 ? " by rank " + walk.rank : "")) : null,
  ]);
  flags(data.flags);

  if (walk && walk.points.length > 1) {
    const [read, smallest] = (() => {
      // The smallest cache that has at most a tenth more misses than one that holds everything.
      const last = walk.points[walk.points.length - 1][1], most = walk.points[0][1];
      const enough = walk.points.find(([, ratio]) => ratio <= last + (most - last) * .05);
      return [last, enough];
    })();
    part("curve", ["Miss ratio by size of the cache", "Caches"], "How many references would miss a cache of each size that always keeps the lines used last. Where the line falls, a part of the working set begins to fit.",
      card(curve(walk.points, [[32768, "L1, 32 KiB"], [1048576, "L2, 1 MiB"], [33554432, "L3, 32 MiB"]], "Miss ratio by size of the cache")),
      said(`From ${size(smallest[0])} on hardly anything is gained: ${(smallest[1] * 100).toFixed(2)} % miss there, ${(read * 100).toFixed(2)} % in a cache that holds everything (each line has to come once).`
        + ` Lines of 64 bytes, one cache for all threads${run.ranks > 1 ? " of rank " + walk.rank : ""}. The marks are common sizes; refrain simulate --l1d 32K,8,64 simulates yours.`));
  }
  if (walk && walk.slices.length > 1) {
    const bars = walk.slices.map((slice, i) => [i, i, slice]);
    part("working-set", "Working set", "How much memory is touched in each stretch of the run, from its beginning on the left to its end on the right. A flat low line fits into a small cache.",
      card(areas(bars.map(bar => bar[2]), walk)), said(`A stretch is ${many(walk.each)} references` + (walk.references < walk.of ? `; the first ${many(walk.references)} of ${many(walk.of)} are shown` : "") + "; the last may be shorter."));
  }
  const rows = data.instructions.rows, most = Math.max(1, ...rows.map(row => row[3]));
  part("instructions", ["Where memory is used", "Instructions"], "Which line of the program loads and stores how much, and how far it goes from one reference to the next. A stride of 64 bytes or more touches a new cache line each time.", card(table(rows, [
    { name: "at", left: true, mono: true, wrap: true, get: row => row[0] }, { name: "access", left: true, get: row => row[1] + " " + row[2] },
    { name: "", bar: row => row[3] / most, colour: row => Math.abs(row[5]) >= 64 && row[6] * 2 >= row[3] ? "var(--bad)" : "var(--accent)", get: () => "" },
    { name: "references", get: row => row[3], show: commas }, { name: "bytes", get: row => row[4], show: size },
    { name: "stride", get: row => row[5], show: (v, row) => row[3] > 1 ? commas(Math.abs(v)).replace(/^/, v < 0 ? "−" : "") : "-" },
    { name: "of these", get: row => row[6] / Math.max(1, row[3] - 1), show: v => Math.round(v * 100) + " %" }, { name: "over", get: row => row[7], show: size },
  ], { filter: "Filter by file, function or line" })), said((data.instructions.all > rows.length ? `The ${rows.length} with the most bytes of ${commas(data.instructions.all)}. ` : "") + "Red: most references of this instruction are in another cache line than the one before."));

  if (data.shared.rows.length) part("sharing", ["False sharing", "Sharing"], "Cache lines of which threads use different bytes and at least one writes: each write takes the line away from the others, though nothing is shared.", card(table(data.shared.rows, [
    { name: "line", left: true, mono: true, get: row => row[1] }, { name: "rank", get: row => row[0] }, { name: "references", get: row => row[2], show: commas },
    { name: "threads", left: true, get: row => row[3].join(", ") }, { name: "at", left: true, mono: true, wrap: true, get: row => row[4].join(", ") },
  ])), said(data.shared.all > data.shared.rows.length ? `The ${data.shared.rows.length} with the most references of ${commas(data.shared.all)}.` : null));

  const busiest = Math.max(1, ...data.threads.rows.map(row => row[2]));
  part("threads", "Threads", "What each thread loads, stores and touches: a thread with a longer bar has more to do.", card(table(data.threads.rows, [
    { name: "thread", left: true, get: row => row[0] + "." + row[1] }, { name: "", bar: row => row[2] / busiest, get: () => "" },
    { name: "references", get: row => row[2], show: commas }, { name: "loads", get: row => row[3], show: commas }, { name: "stores", get: row => row[4], show: commas },
    { name: "loaded", get: row => row[6], show: size }, { name: "stored", get: row => row[7], show: size }, { name: "touched", get: row => row[8], show: size },
  ])));
  part("run", "What ran", null, card(el("dl", { class: "facts" }, [
    ["command", run.command], ["recorded by", run.recorder], ["started", run.started], ["wall time", duration(run.wall_ns) + ", while being recorded"],
    ["file", `${run.file}, ${commas(run.bytes)} bytes, ${run.complete ? "complete" : "partial: the run did not finish"}`],
    ["references", `${commas(run.loads)} loads, ${commas(run.stores)} stores, ${commas(run.updates)} atomic updates` + (run.fetches ? `, ${commas(run.fetches)} fetches of instructions` : "")],
    ["bound", data.bounded ? "more memory is touched than is kept track of: touched bytes and shared lines are at least these" : null],
    ...run.notes.map((line, i) => [i ? "" : "notes", line]),
  ].filter(([, text]) => text !== null).map(([name, text]) => [el("dt", null, name), el("dd", null, text)]))));
}

// Touched in each stretch, and in all until then.
function areas(slices, walk) {
  const left = 66, bottom = 18;
  const most = Math.max(1, ...slices.map(slice => slice[1]));
  const canvas = canvasOf(230, (c, width, height) => {
    const high = height - bottom, each = (width - left) / slices.length;
    c.clearRect(0, 0, width, height);
    c.font = "11.5px " + css("--sans");
    c.textAlign = "right"; c.textBaseline = "middle";
    c.strokeStyle = css("--grid");
    for (let i = 0; i <= 4; i++) {
      const y = high - (high - 10) * i / 4;
      c.beginPath(); c.moveTo(left, y + .5); c.lineTo(width, y + .5); c.stroke();
      c.fillStyle = css("--soft");
      c.fillText(size(most * i / 4), left - 8, y);
    }
    slices.forEach((slice, i) => {
      const h = slice[0] / most * (high - 10);
      c.fillStyle = css("--accent");
      c.fillRect(left + i * each, high - h, Math.max(.6, each - (each > 4 ? 1 : 0)), h);
    });
    c.strokeStyle = css("--bad");
    c.lineWidth = 1.6;
    c.beginPath();
    slices.forEach((slice, i) => { const y = high - slice[1] / most * (high - 10); i ? c.lineTo(left + (i + 1) * each, y) : c.moveTo(left + each / 2, y); });
    c.stroke();
    c.lineWidth = 1;
    c.fillStyle = css("--soft");
    c.textAlign = "left"; c.fillText("start", left, high + 10);
    c.textAlign = "right"; c.fillText("end", width - 2, high + 10);
  }, "Working set over the run");
  canvas.addEventListener("pointermove", event => {
    const slice = slices[Math.floor((event.offsetX - left) / ((canvas.clientWidth - left) / slices.length))];
    if (!slice) return hideTip();
    showTip(`${size(slice[0])} touched in ${many(walk.each)} references\n${size(slice[1])} until here\n${size(slice[2])} loaded, ${size(slice[3])} stored`, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTip);
  return el("div", null, canvas, el("div", { class: "legend" }, el("span", null, el("span", { class: "dot", style: { background: "var(--accent)", padding: "0" } }), "touched in this stretch"), el("span", null, el("span", { class: "dot", style: { background: "var(--bad)", padding: "0" } }), "touched until then")));
}
