// `page.html#selftest` clicks through the page and says what came of it, for tests with a browser that nobody looks at.
async function selftest() {
  const done = [];
  const check = (name, holds) => { done.push((holds ? "ok " : "FAILED ") + name); };
  const pause = () => new Promise(resolve => setTimeout(resolve, 20));
  const ink = canvas => canvas.width && canvas.toDataURL();
  // Pixels of a square that are not its background.
  const filled = (canvas, [left, top, side]) => {
    const ratio = devicePixelRatio || 1, at = n => Math.round(n * ratio);
    // Read from a copy that is made to be read: reading the page's own canvas again and again brings a word on the console.
    const copy = Object.assign(document.createElement("canvas"), { width: at(side - 2), height: at(side - 2) });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, -at(left + 1), -at(top + 1));
    const { data: pixels } = context.getImageData(0, 0, copy.width, copy.height);
    const empty = css("--heat0").match(/[0-9a-f]{2}/gi).map(hex => parseInt(hex, 16));
    let count = 0;
    for (let i = 0; i < pixels.length; i += 4) count += empty.some((part, at) => Math.abs(pixels[i + at] - part) > 2);
    return count;
  };
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  await pause();
  check("has a title and parts", document.querySelector("h1").textContent.length > 0 && document.querySelectorAll("section h2").length >= 2);
  check("every part says how to read it", [...document.querySelectorAll("section:not(#flags):not(#run)")].every(s => s.querySelector(".read")?.textContent));
  check("every link leads somewhere", [...document.querySelectorAll("nav a")].every(a => document.querySelector(a.getAttribute("href"))));
  check("pictures have a name", [...document.querySelectorAll("canvas, svg")].every(p => p.getAttribute("aria-label")));
  const before = getComputedStyle(document.body).backgroundColor, was = isDark();
  document.getElementById("theme").click();
  check("dark mode", isDark() !== was && getComputedStyle(document.body).backgroundColor !== before);
  key(document.body, "d");
  check("and back by key", isDark() === was && getComputedStyle(document.body).backgroundColor === before);
  const sort = document.querySelector("th button");
  if (sort) {
    const order = () => [...sort.closest("table").querySelectorAll("tbody tr")].map(row => row.textContent).join("|");
    sort.click();
    const up = order();
    sort.click();
    check("tables sort", order() !== up || sort.closest("table").querySelectorAll("tbody tr").length < 2);
  }
  const search = document.querySelector("input[type=search]");
  if (search) {
    const rows = () => search.closest(".card").querySelectorAll("tbody tr").length, all = rows();
    search.value = "no such thing anywhere";
    search.dispatchEvent(new Event("input"));
    const none = rows();
    search.value = "";
    search.dispatchEvent(new Event("input"));
    check("filter", none === 0 && rows() === all);
  }
  for (const [id, name] of [["timeline", "timeline"], ["matrix", "matrix"]]) {
    const canvas = document.querySelector(`#${id} canvas`);
    if (!canvas) continue;
    const box = canvas.parentElement, view = () => JSON.stringify(box.view());
    key(canvas, "0");
    const all = view(), picture = ink(canvas);
    const large = id === "timeline" || data.matrix.ranks > 4;
    key(canvas, "+");
    check(name + " zooms", !large || view() !== all && ink(canvas) !== picture);
    const close = view();
    key(canvas, "ArrowRight");
    check(name + " moves", !large || view() !== close);
    key(canvas, "0");
    check(name + " goes back", view() === all);
    for (const button of box.querySelectorAll(".tools button")) { button.click(); await pause(); }
    key(canvas, "0");
    if (id === "matrix") for (const [label, all] of [["Messages", data.matrix.messages], ["Bytes", data.matrix.bytes]]) {
      box.querySelector(`[data-what=${label}]`).click();
      check(`matrix of ${label.toLowerCase()} has cells`, (all > 0) === (filled(canvas, box.square()) > 0));
    }
    const filters = [...box.querySelectorAll(".legend button")], plain = ink(canvas);
    let changed = 0, pressed = 0;
    for (const filter of filters) {
      filter.click();
      pressed += filter.getAttribute("aria-pressed") === "true";
      changed += ink(canvas) !== plain;
      filter.click();
    }
    // One function alone looks the same among all.
    if (filters.length) check(name + " filters", pressed === filters.length && (filters.length < 2 || changed > 0) && ink(canvas) === plain);
    const at = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: at.left + at.width / 2, clientY: at.top + at.height / 2, bubbles: true }));
  }
  document.querySelectorAll("canvas").forEach(canvas => canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: 300, clientY: 50 })));
  const fold = document.querySelector("details");
  if (fold) { const open = fold.open; fold.querySelector("summary").click(); await pause(); check("loops fold", fold.open !== open); }
  check("nothing is loaded", performance.getEntriesByType("resource").length === 0);
  check("no errors: " + errors.join("; "), errors.length === 0);
  document.body.append(el("pre", { id: "selftest" }, "SELFTEST " + (done.every(line => line.startsWith("ok")) ? "passed" : "failed") + "\n" + done.join("\n")));
}
if (location.hash === "#selftest") selftest().catch(error => document.body.append(el("pre", { id: "selftest" }, "SELFTEST failed\n" + error.stack)));
