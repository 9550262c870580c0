// Tables whose columns sort, with bars where a bar says more.
// columns: { name, left, mono, wrap, get, show, bar, colour }
function table(rows, columns, options = {}) {
  let order = { at: options.sort ?? -1, down: true };
  const body = el("tbody");
  let wanted = "";
  const fill = () => {
    const shown = rows.filter(row => !wanted || columns.some(c => c.left && String(c.get(row)).toLowerCase().includes(wanted)));
    if (order.at >= 0) {
      const { get } = columns[order.at];
      const value = row => get(row) ?? -1;
      shown.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (order.down ? -1 : 1));
    }
    body.replaceChildren(...shown.map(row => el("tr", null, columns.map(column => {
      const kind = [column.left && "left", column.mono && "mono", column.wrap && "wrap", column.bar && "meter"].filter(Boolean).join(" ");
      if (column.bar) {
        const part = Math.max(0, Math.min(1, column.bar(row)));
        return el("td", { class: kind }, part > 0 ? el("div", { style: { width: part * 100 + "%", background: column.colour ? column.colour(row) : "var(--accent)" } }) : "");
      }
      const value = column.get(row);
      const text = column.show ? column.show(value, row) : value ?? "-";
      return el("td", { class: kind || null }, column.dot ? el("span", { class: "dot", style: { background: column.dot(row) } }) : null, String(text));
    }))));
    table.shown = shown.length;
  };
  const heads = columns.map((column, at) => {
    const button = el("button", { type: "button", onclick: () => {
      order = { at, down: order.at === at ? !order.down : !column.left };
      heads.forEach((head, i) => head.firstElementChild?.setAttribute("data-order", i === at ? (order.down ? "↓" : "↑") : ""));
      fill();
    } }, column.name);
    return el("th", { class: column.left ? "left" : null, scope: "col" }, column.name && !column.bar ? button : "");
  });
  fill();
  const whole = el("div", { class: "scroll", tabindex: "0" }, el("table", null, el("thead", null, el("tr", null, heads)), body));
  if (!options.filter) return whole;
  const input = el("input", { type: "search", placeholder: options.filter, "aria-label": options.filter, oninput: event => {
    wanted = event.target.value.toLowerCase();
    fill();
  } });
  return el("div", null, el("div", { class: "tools" }, input), whole);
}

// One bar a rank (or a few ranks): parts on top of each other. parts: [{ name, colour, get }].
function rankBars(bars, parts, options) {
  let chosen = null;
  const most = Math.max(1, ...bars.map(bar => parts.reduce((sum, part) => sum + part.get(bar), 0)));
  const left = 62, bottom = 20;
  const at = (x, width) => Math.floor((x - left) / ((width - left) / bars.length));
  const canvas = canvasOf(options.height || 220, (c, width, height) => {
    const high = height - bottom, each = (width - left) / bars.length, gap = each > 6 ? Math.min(4, each * .18) : 0;
    c.clearRect(0, 0, width, height);
    c.font = "11.5px " + css("--sans");
    c.fillStyle = css("--soft");
    c.strokeStyle = css("--grid");
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (let i = 0; i <= 4; i++) {
      const y = high - (high - 10) * i / 4;
      c.beginPath(); c.moveTo(left, y + .5); c.lineTo(width, y + .5); c.stroke();
      c.fillText(duration(most * i / 4), left - 8, y);
    }
    bars.forEach((bar, i) => {
      let y = high;
      for (const part of parts) {
        const h = part.get(bar) / most * (high - 10);
        c.globalAlpha = chosen && chosen !== part.name ? .18 : 1;
        c.fillStyle = solid(part.colour);
        c.fillRect(left + i * each + gap / 2, y - h, Math.max(each - gap, .6), h);
        y -= h;
      }
    });
    c.globalAlpha = 1;
    c.fillStyle = css("--soft");
    c.textAlign = "center";
    const every = Math.max(1, Math.ceil(bars.length / Math.max(1, Math.floor((width - left) / 44))));
    for (let i = 0; i < bars.length; i += every) c.fillText(bars[i][0], left + (i + .5) * each, high + 11);
    c.textAlign = "left";
    c.fillText("rank", 2, high + 11);
  }, options.label);
  canvas.addEventListener("pointermove", event => {
    const bar = bars[at(event.offsetX, canvas.clientWidth)];
    if (!bar) return hideTip();
    const who = bar[0] === bar[1] ? "rank " + bar[0] : `ranks ${bar[0]} to ${bar[1]}, mean`;
    showTip([who, ...parts.slice().reverse().filter(part => part.get(bar) > 0).map(part => part.name + "  " + duration(part.get(bar)))].join("\n"), event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTip);
  const legend = el("div", { class: "legend" }, parts.map(part => el("button", { type: "button", "aria-pressed": "false", onclick: event => {
    chosen = chosen === part.name ? null : part.name;
    for (const button of legend.children) button.setAttribute("aria-pressed", String(chosen !== null && button === event.currentTarget));
    canvas.redraw();
  } }, el("span", { class: "dot", style: { background: part.colour, padding: "0" } }), part.name)));
  return el("div", null, canvas, legend);
}

// Bars of a distribution. rows: [label, value, text]; columns that are empty stay empty.
function histogram(rows, label) {
  const width = 1040, height = 210, left = 8, bottom = 42, top = 20;
  const most = Math.max(1, ...rows.map(row => row[1]));
  const each = Math.min(120, (width - left) / rows.length);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, width: "100%" });
  rows.forEach(([name, value, text], i) => {
    const h = value > 0 ? Math.max(1.5, (height - bottom - top) * value / most) : 0, x = left + i * each;
    const bar = svg("rect", { x: x + each * .08, y: height - bottom - h, width: each * .84, height: h, fill: "var(--accent)", rx: 2 });
    bar.addEventListener("pointermove", event => showTip(text, event.clientX, event.clientY));
    bar.addEventListener("pointerleave", hideTip);
    chart.append(bar);
    if (value > 0) chart.append(svg("text", { x: x + each / 2, y: height - bottom - h - 5, "text-anchor": "middle" }, each > 60 ? many(value) : value >= 1e3 ? Number(value.toPrecision(2)).toExponential(1).replace("e+", "e") : String(value)));
    if (each > 52 || i % Math.ceil(52 / each) === 0) chart.append(svg("text", { x: x + each / 2, y: height - bottom + 16, "text-anchor": "middle" }, name));
  });
  chart.append(svg("line", { x1: left, x2: left + each * rows.length, y1: height - bottom, y2: height - bottom, class: "axis" }));
  return chart;
}

// A line over a logarithmic scale of sizes. points: [size, share from 0 to 1].
function curve(points, marks, label) {
  const width = 1040, height = 280, left = 52, right = 14, top = 12, bottom = 34;
  const low = Math.log2(points[0][0]), high = Math.max(low + 1, Math.log2(points[points.length - 1][0]));
  const most = Math.max(.001, ...points.map(point => point[1]));
  const x = bytes => left + (Math.log2(bytes) - low) / (high - low) * (width - left - right);
  const y = share => top + (1 - share / most) * (height - top - bottom);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, width: "100%" });
  for (let i = 0; i <= 4; i++) {
    const share = most * i / 4;
    chart.append(svg("line", { x1: left, x2: width - right, y1: y(share), y2: y(share), class: "axis" }),
      svg("text", { x: left - 8, y: y(share) + 4, "text-anchor": "end" }, (share * 100).toFixed(most < .1 ? 1 : 0) + " %"));
  }
  const step = Math.max(1, Math.ceil((high - low) / 12));
  for (let bits = Math.ceil(low); bits <= high; bits += step)
    chart.append(svg("text", { x: x(2 ** bits), y: height - 12, "text-anchor": "middle" }, size(2 ** bits).replace(/\.00?(?= )/, "").replace(/\.0 /, " ")));
  for (const [bytes, name] of marks) if (bytes >= points[0][0] && bytes <= points[points.length - 1][0])
    chart.append(svg("line", { x1: x(bytes), x2: x(bytes), y1: top, y2: height - bottom, stroke: "var(--faint)", "stroke-dasharray": "3 4" }),
      svg("text", { x: x(bytes) + 5, y: top + 10 }, name));
  let path = "", last = null;
  for (const [bytes, share] of points) {
    path += last === null ? `M${x(bytes)},${y(share)}` : `H${x(bytes)}V${y(share)}`;
    last = share;
  }
  chart.append(svg("path", { d: path, fill: "none", stroke: "var(--accent)", "stroke-width": 2 }));
  return chart;
}
