// The communication matrix: who sends how much to whom. Drawn from stretches of ranks that send the same to the rank so far
// away, at any zoom; or from cells where these would be too many.
function matrixPicture(matrix) {
  const n = matrix.ranks;
  const exact = matrix.runs.length > 0;
  let what = matrix.bytes > 0 ? 4 : 3; // 3: messages, 4: bytes
  let view = { x: 0, y: 0, size: n }; // ranks
  const CELLS = 256;
  // The cells that are seen: [ranks a side, Map of row * cells + column -> amount].
  function cells() {
    if (!exact) {
      const each = matrix.cells.each, map = new Map();
      for (const row of matrix.cells.rows) {
        const x = row[1] - Math.floor(view.x / each), y = row[0] - Math.floor(view.y / each);
        if (x >= 0 && y >= 0 && x * each < view.size + each && y * each < view.size + each) map.set(y * 4096 + x, row[what - 1]);
      }
      return { each, map, x0: Math.floor(view.x / each) * each, y0: Math.floor(view.y / each) * each };
    }
    const each = Math.max(1, Math.ceil(view.size / CELLS)), map = new Map();
    const x0 = Math.floor(view.x / each) * each, y0 = Math.floor(view.y / each) * each;
    for (const run of matrix.runs) {
      const [offset, first, last] = run;
      const from = Math.max(first, y0, x0 - offset), to = Math.min(last, Math.ceil(view.y + view.size), Math.ceil(view.x + view.size) - offset);
      // From the edge of one cell to that of the next.
      for (let rank = from, next; rank <= to; rank = next) {
        const row = Math.floor((rank - y0) / each), column = Math.floor((rank + offset - x0) / each);
        next = Math.min(to + 1, y0 + (row + 1) * each, x0 + (column + 1) * each - offset);
        const key = row * 4096 + column;
        map.set(key, (map.get(key) || 0) + run[what] * (next - rank));
      }
    }
    return { each, map, x0, y0 };
  }
  let drawn = null;
  const left = 52, top = 24;
  const canvas = canvasOf(520, (c, width, height) => {
    const side = Math.min(width - left, height - top) - 2;
    drawn = { ...cells(), side };
    const scale = side / view.size, { each, map, x0, y0 } = drawn;
    // Of cells with something in them: messages may have no bytes.
    let most = 0, least = Infinity;
    for (const amount of map.values()) if (amount > 0) { most = Math.max(most, amount); least = Math.min(least, amount); }
    c.clearRect(0, 0, width, height);
    c.fillStyle = css("--heat0");
    c.fillRect(left, top, side, side);
    c.save();
    c.beginPath(); c.rect(left, top, side, side); c.clip();
    const cell = each * scale, gap = cell > 7 ? 1 : 0;
    for (const [key, amount] of map) {
      if (!(amount > 0)) continue;
      const column = key % 4096, row = (key - column) / 4096;
      const part = most === least ? .75 : .18 + .82 * Math.log(amount / least) / Math.log(most / least);
      c.fillStyle = heat(part);
      c.fillRect(left + (x0 + column * each - view.x) * scale, top + (y0 + row * each - view.y) * scale, Math.max(1.1, cell - gap), Math.max(1.1, cell - gap));
    }
    c.restore();
    c.strokeStyle = css("--line");
    c.strokeRect(left - .5, top - .5, side + 1, side + 1);
    c.fillStyle = css("--soft");
    c.font = "11.5px " + css("--sans");
    const step = Math.max(1, Math.ceil(view.size / 12 / 10 ** Math.floor(Math.log10(Math.max(1, view.size / 12)))) * 10 ** Math.floor(Math.log10(Math.max(1, view.size / 12))));
    for (let rank = Math.ceil(view.x / step) * step; rank < view.x + view.size && rank < n; rank += step) {
      if (rank === 0 && n > 32) continue;
      c.textAlign = "center"; c.textBaseline = "alphabetic";
      c.fillText(rank, left + (rank + .5 - view.x) * scale, top - 6);
    }
    for (let rank = Math.ceil(view.y / step) * step; rank < view.y + view.size && rank < n; rank += step) {
      if (rank === 0 && n > 32) continue;
      c.textAlign = "right"; c.textBaseline = "middle";
      c.fillText(rank, left - 6, top + (rank + .5 - view.y) * scale);
    }
    c.textAlign = "left"; c.textBaseline = "alphabetic";
    c.fillText("to", left - 18, top - 6); c.fillText("from", left - 45, top + 9);
    scaleText.textContent = most === 0 ? `no ${what === 4 ? "bytes are" : "messages are"} sent here` : most === least ? show(most) : show(least) + " to " + show(most);
  }, "Communication matrix: senders from top to bottom, receivers from left to right");
  const show = amount => what === 4 ? size(amount) : plural(amount, "message");
  const scaleText = el("span", { class: "scale", style: { padding: "0" } });
  const zoom = (factor, px = .5, py = .5) => {
    const next = Math.min(n, Math.max(Math.min(n, 4), view.size * factor));
    view.x = Math.max(0, Math.min(n - next, view.x + px * (view.size - next)));
    view.y = Math.max(0, Math.min(n - next, view.y + py * (view.size - next)));
    view.size = next;
    canvas.redraw();
  };
  const move = (dx, dy) => {
    view.x = Math.max(0, Math.min(n - view.size, view.x + dx * view.size));
    view.y = Math.max(0, Math.min(n - view.size, view.y + dy * view.size));
    canvas.redraw();
  };
  canvas.classList.add("live");
  canvas.tabIndex = 0;
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : .8, (event.offsetX - left) / drawn.side, (event.offsetY - top) / drawn.side);
  }, { passive: false });
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { "+": () => zoom(.6), "=": () => zoom(.6), "-": () => zoom(1.6), "0": () => zoom(1e9), ArrowLeft: () => move(-.15, 0), ArrowRight: () => move(.15, 0), ArrowUp: () => move(0, -.15), ArrowDown: () => move(0, .15) };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  let drag = null;
  canvas.addEventListener("pointerdown", event => { if (event.button !== 0) return; drag = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); });
  for (const over of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(over, () => { drag = null; });
  canvas.addEventListener("dblclick", event => zoom(.5, (event.offsetX - left) / drawn.side, (event.offsetY - top) / drawn.side));
  canvas.addEventListener("pointermove", event => {
    if (drag) {
      move(-(event.clientX - drag[0]) / drawn.side, -(event.clientY - drag[1]) / drawn.side);
      drag = [event.clientX, event.clientY];
      return hideTip();
    }
    const scale = drawn.side / view.size;
    const x = view.x + (event.offsetX - left) / scale, y = view.y + (event.offsetY - top) / scale;
    const column = Math.floor((x - drawn.x0) / drawn.each), row = Math.floor((y - drawn.y0) / drawn.each);
    const amount = x >= 0 && y >= 0 && x < n && y < n ? drawn.map.get(row * 4096 + column) : undefined;
    if (!amount) return hideTip();
    const name = (at, base) => {
      const first = base + at * drawn.each, last = Math.min(n, first + drawn.each) - 1;
      return first === last ? "rank " + first : `ranks ${first}-${last}`;
    };
    showTip(`${name(row, drawn.y0)} to ${name(column, drawn.x0)}\n${show(amount)}`, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTip);
  const choice = (name, value) => el("button", { type: "button", "data-what": name, "aria-pressed": String(what === value), onclick: event => {
    what = value;
    for (const button of tools.querySelectorAll("[data-what]")) button.setAttribute("aria-pressed", String(button === event.currentTarget));
    canvas.redraw();
  } }, name);
  const tools = el("div", { class: "tools" }, choice("Bytes", 4), choice("Messages", 3), el("span", { class: "gap" }),
    el("button", { type: "button", "aria-label": "Zoom in", onclick: () => zoom(.6) }, "+"),
    el("button", { type: "button", "aria-label": "Zoom out", onclick: () => zoom(1.6) }, "−"),
    el("button", { type: "button", onclick: () => zoom(1e9) }, "All"));
  const ramp = el("span", { class: "ramp" });
  const paint = () => { ramp.style.background = `linear-gradient(90deg, ${heat(.18)}, ${heat(.6)}, ${heat(1)})`; };
  redraws.push(paint);
  paint();
  const box = el("div", null, tools, canvas, el("div", { class: "legend" }, el("span", null, "each cell", ramp, scaleText, ", logarithmic")));
  box.view = () => view;
  box.square = () => [left, top, drawn.side];
  return box;
}

// Ranks as cells of a grid, one colour a kind; from then on kinds are grey.
const KIND_COLOURS = 24;
function kindMap(kinds, n) {
  const colours = at => at < KIND_COLOURS ? `hsl(${(210 + at * 137.5) % 360} ${at < 12 ? 46 : 30}% ${at % 3 === 2 ? 64 : 52}%)` : "var(--faint)";
  const of = [];
  for (const [kind, count] of kinds.row) for (let i = 0; i < count; i++) of.push(kind);
  // A grid like the program's own, if that is square.
  const root = Math.sqrt(n);
  const columns = Number.isInteger(root) && n >= 4 ? root : n <= 32 ? n : Math.min(128, 2 ** Math.ceil(Math.log2(root * 1.6)));
  const rows = Math.ceil(n / columns);
  const cell = width => Math.max(2, Math.min(38, width / columns));
  const high = Math.min(420, Math.max(30, rows * Math.min(38, 520 / columns)));
  const canvas = canvasOf(high, (c, width, height) => {
    const each = Math.min(cell(width), height / rows), gap = each > 6 ? 1 : 0;
    c.clearRect(0, 0, width, height);
    c.textAlign = "center"; c.textBaseline = "middle"; c.font = "11px " + css("--sans");
    of.forEach((kind, rank) => {
      const x = rank % columns * each, y = Math.floor(rank / columns) * each;
      c.fillStyle = solid(colours(kind));
      c.fillRect(x, y, each - gap, each - gap);
      if (each >= 20) { c.fillStyle = "#fff"; c.fillText(rank, x + each / 2, y + each / 2); }
    });
    canvas.each = each;
  }, "Kinds of ranks");
  canvas.addEventListener("pointermove", event => {
    const column = Math.floor(event.offsetX / canvas.each), rank = Math.floor(event.offsetY / canvas.each) * columns + column;
    if (column >= columns || rank >= n) return hideTip();
    const kind = kinds.described[of[rank]];
    showTip(`rank ${rank}\nkind ${of[rank] + 1}${kind ? `: ${plural(kind[1], "rank")}, ${fromTo(kind[2], kind[3], commas)} calls each` : ""}`, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTip);
  return { canvas, colours };
}
