// All ranks over time. Two pictures of the same: an overview of the whole, binned, and every call of a window.
function timelinePicture(timeline) {
  const { functions, rows, overview, detail } = timeline;
  const whole = timeline.span;
  const ordered = timeline.how === "order", when = (t, step) => {
    if (ordered) return commas(t);
    // As many digits as tell one mark from the next.
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, size]) => Math.abs(t) >= size) || ["ns", 1];
    return (t / size).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)))) + " " + unit;
  };
  let view = (timeline.home || whole).slice();
  let chosen = null;
  const left = 92, band = timeline.bands.length ? 16 : 0, top = 22 + band;
  const high = Math.max(3, Math.min(30, Math.floor(460 / rows.length)));
  const height = top + rows.length * high + 6;
  // Gaps and durations become starts and ends, once.
  const calls = detail ? detail.rows.map(flat => {
    const list = [];
    let at = detail.start;
    for (let i = 0; i < flat.length; i += 3) {
      const start = at + flat[i], end = start + flat[i + 1];
      list.push([start, end, flat[i + 2]]);
      at = end;
    }
    return list;
  }) : [];
  const xOf = (t, width) => left + (t - view[0]) / (view[1] - view[0]) * (width - left);
  const tOf = (x, width) => view[0] + (x - left) / (width - left) * (view[1] - view[0]);
  const alpha = name => chosen !== null && chosen !== called(name) ? .15 : 1;
  // Only where every call is held; elsewhere there is the overview.
  const isClose = () => {
    const slack = (view[1] - view[0]) * 1e-6;
    return Boolean(detail) && (!overview || view[0] >= detail.start - slack && view[1] <= detail.end + slack);
  };
  const canvas = canvasOf(height, (c, width, tall) => {
    c.clearRect(0, 0, width, tall);
    c.font = "11.5px " + css("--sans");
    // The scale.
    const raw = (view[1] - view[0]) / Math.max(2, (width - left) / 110);
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(n => n * unit).find(n => n >= raw) || raw;
    c.fillStyle = css("--soft"); c.strokeStyle = css("--grid"); c.textAlign = "center"; c.textBaseline = "alphabetic";
    for (let t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
      const x = xOf(t, width);
      c.beginPath(); c.moveTo(x + .5, top - 2); c.lineTo(x + .5, tall); c.stroke();
      if (x > left + 12 && x < width - 24) c.fillText(when(t, step), x, 12);
    }
    // Rows.
    c.textAlign = "right"; c.textBaseline = "middle";
    const every = Math.max(1, Math.ceil(12 / high));
    rows.forEach((name, row) => {
      const y = top + row * high;
      if (row % every === 0) { c.fillStyle = css("--soft"); c.fillText(name.length > 14 ? name.slice(0, 13) + "…" : name, left - 8, y + high / 2); }
    });
    c.save();
    c.beginPath(); c.rect(left, 0, width - left, tall); c.clip();
    // Iterations.
    timeline.bands.forEach(([start, end, name], i) => {
      const x = xOf(start, width), w = xOf(end, width) - x;
      if (x > width || x + w < left) return;
      c.fillStyle = css(i % 2 ? "--wash" : "--line");
      c.fillRect(x, 20, w, band - 4);
      if (w > 24) { c.fillStyle = css("--soft"); c.textAlign = "left"; c.fillText(name, Math.max(x, left) + 4, 20 + (band - 4) / 2); }
    });
    const bar = Math.max(1, high - (high > 8 ? 3 : high > 4 ? 1 : 0));
    rows.forEach((_, row) => {
      c.fillStyle = css("--outside");
      c.globalAlpha = .35;
      const x = Math.max(left, xOf(whole[0], width));
      c.fillRect(x, top + row * high, Math.min(width, xOf(whole[1], width)) - x, bar);
      c.globalAlpha = 1;
    });
    if (overview && !isClose()) {
      const wide = (overview.end - overview.start) / overview.columns;
      overview.rows.forEach((text, row) => {
        for (let i = 0; i < overview.columns; i++) {
          const f = text.charCodeAt(2 * i) - 48, share = (text.charCodeAt(2 * i + 1) - 48) / 32;
          if (f < 0 || share <= 0) continue;
          const x = xOf(overview.start + i * wide, width), x2 = xOf(overview.start + (i + 1) * wide, width);
          if (x2 < left || x > width) continue;
          c.fillStyle = solid(colour(functions[f]));
          c.globalAlpha = alpha(functions[f]) * (.25 + .75 * share);
          c.fillRect(x, top + row * high, x2 - x + .4, bar);
        }
      });
      c.globalAlpha = 1;
      if (detail) {
        c.strokeStyle = css("--ink");
        const x = xOf(detail.start, width), w = Math.max(2, xOf(detail.end, width) - x);
        c.strokeRect(x + .5, top - 3.5, w, rows.length * high + 5);
      }
    } else if (detail) {
      calls.forEach((list, row) => {
        for (const [start, end, f] of list) {
          const x = xOf(start, width), x2 = xOf(end, width);
          if (x2 < left || x > width) continue;
          c.fillStyle = solid(colour(functions[f]));
          c.globalAlpha = alpha(functions[f]);
          c.fillRect(x, top + row * high, Math.max(.7, x2 - x), bar);
        }
      });
      c.globalAlpha = 1;
      if (lines) {
        c.strokeStyle = css("--ink");
        const seen = timeline.messages.filter(line => line[3] >= view[0] && line[1] <= view[1]).length;
        c.globalAlpha = seen > 1200 ? .12 : seen > 400 ? .25 : .5;
        c.lineWidth = .8;
        for (const [from, sent, to, got] of timeline.messages) {
          const x = xOf(sent, width), x2 = xOf(got, width);
          if (x2 < left || x > width) continue;
          c.beginPath(); c.moveTo(x, top + from * high + bar / 2); c.lineTo(x2, top + to * high + bar / 2); c.stroke();
        }
        c.globalAlpha = 1;
        c.lineWidth = 1;
      }
    }
    c.restore();
    state.textContent = isClose() ? "every call" : "in slices: the stronger a colour, the more time in MPI";
    frame.disabled = !detail;
  }, "Timeline: ranks from top to bottom, time from left to right");
  let lines = true;
  const state = el("span");
  const clamp = (from, to) => {
    const most = whole[1] - whole[0], length = Math.max(Math.min(most, ordered ? 10 : 200, detail ? detail.end - detail.start : most), Math.min(most, to - from));
    from = Math.max(whole[0], Math.min(whole[1] - length, from));
    view = [from, from + length];
    canvas.redraw();
  };
  const zoom = (factor, at = .5) => {
    const middle = view[0] + (view[1] - view[0]) * at, length = (view[1] - view[0]) * factor;
    clamp(middle - length * at, middle + length * (1 - at));
  };
  const move = part => { const by = (view[1] - view[0]) * part; clamp(view[0] + by, view[1] + by); };
  canvas.classList.add("live");
  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "0": () => clamp(whole[0], whole[1]), ArrowLeft: () => move(-.15), ArrowRight: () => move(.15), Home: () => clamp(whole[0], whole[0] + view[1] - view[0]), End: () => clamp(whole[1] - view[1] + view[0], whole[1]) };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : .8, Math.max(0, (event.offsetX - left) / (canvas.clientWidth - left)));
  }, { passive: false });
  canvas.addEventListener("dblclick", event => zoom(.4, Math.max(0, (event.offsetX - left) / (canvas.clientWidth - left))));
  let drag = null;
  canvas.addEventListener("pointerdown", event => { if (event.button !== 0) return; drag = event.clientX; canvas.setPointerCapture(event.pointerId); });
  for (const over of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(over, () => { drag = null; });
  canvas.addEventListener("pointermove", event => {
    if (drag !== null) {
      move(-(event.clientX - drag) / (canvas.clientWidth - left));
      drag = event.clientX;
      return hideTip();
    }
    const row = Math.floor((event.offsetY - top) / high), t = tOf(event.offsetX, canvas.clientWidth);
    if (row < 0 || row >= rows.length || event.offsetX < left) return hideTip();
    const group = isClose() && overview && / - /.test(rows[row]);
    let text = rows[row] + (group ? ", the first of them" : "") + (ordered ? "" : " at " + duration(t));
    if (isClose()) {
      const slack = (view[1] - view[0]) / (canvas.clientWidth - left);
      const call = calls[row]?.find(([start, end]) => t >= start - slack && t <= end + slack);
      text += call ? `\n${functions[call[2]]}${ordered ? "" : ", " + duration(call[1] - call[0])}` : t > whole[1] ? "" : ordered ? "\nothers are not there yet" : timeline.lost ? "\noutside MPI, or in a call without a time" : "\noutside MPI";
    } else if (overview) {
      const i = Math.floor((t - overview.start) / (overview.end - overview.start) * overview.columns), line = overview.rows[row];
      const f = line.charCodeAt(2 * i) - 48, parts = line.charCodeAt(2 * i + 1) - 48;
      // Of 32 parts, rounded down, and at least one.
      const share = parts <= 1 ? "less than 6 %" : parts >= 32 ? "100 %" : `about ${Math.round((parts + .5) / 32 * 100)} %`;
      if (f >= 0) text += `\n${share} in MPI, most of it in ${functions[f]}`;
    }
    showTip(text, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTip);
  const frame = el("button", { type: "button", "data-do": "detail", onclick: () => clamp(detail.start, detail.end) }, "Every call");
  const tools = el("div", { class: "tools" },
    el("button", { type: "button", "data-do": "all", onclick: () => clamp(whole[0], whole[1]) }, overview ? "Whole run" : "All of it"), detail && overview ? frame : null,
    timeline.messages.length ? el("button", { type: "button", "data-do": "messages", "aria-pressed": "true", onclick: event => {
      lines = !lines;
      event.currentTarget.setAttribute("aria-pressed", String(lines));
      canvas.redraw();
    } }, "Messages") : null,
    el("span", { class: "gap" }), state,
    el("button", { type: "button", "data-do": "in", "aria-label": "Zoom in", onclick: () => zoom(.5) }, "+"),
    el("button", { type: "button", "data-do": "out", "aria-label": "Zoom out", onclick: () => zoom(2) }, "−"));
  const legend = el("div", { class: "legend" }, [...new Set(timeline.legend.map(called))].map(name => el("button", { type: "button", "aria-pressed": "false", onclick: event => {
    chosen = chosen === name ? null : name;
    for (const button of legend.children) button.setAttribute("aria-pressed", String(chosen !== null && button === event.currentTarget));
    canvas.redraw();
  } }, el("span", { class: "dot", style: { background: name === OTHERS ? OTHER : colour(name), padding: "0" } }), name)), el("span", null, el("span", { class: "dot", style: { background: "var(--outside)", padding: "0" } }), ordered ? "others are not there yet" : "outside MPI"));
  const box = el("div", null, tools, canvas, legend);
  box.view = () => view;
  if (location.hash === "#every-call" && detail) view = [detail.start, detail.end];
  return box;
}
