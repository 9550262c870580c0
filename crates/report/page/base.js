"use strict";
// What went wrong, for the self-test.
const errors = [];
addEventListener("error", event => errors.push(String(event.message)));
addEventListener("unhandledrejection", event => errors.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => errors.push("blocked: " + event.blockedURI));

const data = JSON.parse(document.getElementById("data").textContent);

// Elements. Text only ever becomes text: nothing of the trace is read as HTML.
function el(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter(child => child !== null && child !== undefined));
  return element;
}
// The name of SVG elements' namespace, which looks like an address and is none.
const SVG = ["http:", "", "www.w3.org", "2000", "svg"].join("/");
function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children.flat(9));
  return element;
}

const commas = n => Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const plural = (n, one) => commas(n) + " " + one + (n === 1 ? "" : "s");
function digits(x) { return x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2); }
function duration(ns) {
  if (ns === null || ns === undefined) return "-";
  if (ns < 0) return "-" + duration(-ns);
  if (ns < 1000) return Math.round(ns) + " ns";
  for (const [unit, size] of [["us", 1e3], ["ms", 1e6], ["s", 1e9]])
    if (ns < size * 999.5 || unit === "s") return digits(ns / size) + " " + unit;
}
function size(bytes) {
  if (bytes === null || bytes === undefined) return "-";
  if (bytes < 1024) return Math.round(bytes) + " B";
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let at = -1;
  do { bytes /= 1024; at++; } while (bytes >= 1024 && at < units.length - 1);
  return digits(bytes) + " " + units[at];
}
function many(n) {
  if (n < 1e5) return commas(n);
  for (const [unit, scale] of [["thousand", 1e3], ["million", 1e6], ["billion", 1e9], ["trillion", 1e12]])
    if (n < scale * 1000 || scale === 1e12) return digits(n / scale) + " " + unit;
}
// The least and the most of something.
const fromTo = (least, most, show) => least === most ? show(least) : show(least) + " - " + show(most);
const percent = (part, whole) => whole > 0 ? (part / whole * 100).toFixed(part / whole < .1 ? 1 : 0) + " %" : "-";

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";

// One colour a function, the same everywhere on the page. Functions come in the order of their time; the last ones share one.
const PALETTE = ["#3f76b0", "#d9822b", "#4c9a6a", "#b8504c", "#8069a8", "#2b9aa0", "#c2649a", "#8c7853", "#6f9c2f", "#5b6bc0", "#c99a1d"];
const OTHERS = "other functions", OTHER = "#607d8b";
const colours = new Map();
function colour(name) {
  if (!name) return "var(--outside)";
  if (!colours.has(name)) colours.set(name, name !== OTHERS && colours.size < PALETTE.length ? PALETTE[colours.size] : OTHER);
  return colours.get(name);
}
// What a legend calls it.
const called = name => colour(name) === OTHER ? OTHERS : name;
// A colour for canvases, which know no variables.
const solid = text => text.startsWith("var(") ? css(text.slice(4, -1)) : text;
// From pale to strong: how much of something there is, from 0 to 1.
function heat(x) {
  if (x <= 0) return css("--heat0");
  const t = Math.min(1, x);
  return isDark() ? `hsl(${215 - 175 * t} ${45 + 30 * t}% ${22 + 42 * t}%)` : `hsl(${212 - 12 * t} ${38 + 22 * t}% ${88 - 62 * t}%)`;
}

// A line beside the pointer.
const tip = document.getElementById("tip");
function showTip(text, x, y) {
  if (!text) { tip.hidden = true; return; }
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
}
const hideTip = () => showTip("");

// Canvases are drawn anew when they change size or the colours do.
const redraws = [];
function canvasOf(height, draw, label) {
  const canvas = el("canvas", { role: "img", "aria-label": label, style: { height: height + "px" } });
  const redraw = () => {
    const width = canvas.clientWidth, high = canvas.clientHeight, ratio = devicePixelRatio || 1;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(high * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    draw(context, width, high);
  };
  canvas.redraw = redraw;
  redraws.push(redraw);
  new ResizeObserver(redraw).observe(canvas);
  return canvas;
}

function setTheme(dark, keep) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  button.textContent = dark ? "Light" : "Dark";
  redraws.forEach(redraw => redraw());
  if (!keep) return;
  keptTheme = dark ? "dark" : "light";
  try { localStorage.setItem("refrain-theme", keptTheme); } catch { /* a file may keep nothing */ }
}
let keptTheme = null;
try { keptTheme = localStorage.getItem("refrain-theme"); } catch { /* as above */ }
const preferred = matchMedia("(prefers-color-scheme: dark)");
setTheme(keptTheme ? keptTheme === "dark" : preferred.matches, false);
preferred.addEventListener("change", () => { if (!keptTheme) setTheme(preferred.matches, false); });
document.getElementById("theme").addEventListener("click", () => setTheme(!isDark(), true));
