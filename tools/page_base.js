// What tilec's pages share: the report, elements, numbers.
const REPORT = JSON.parse(document.getElementById("report").textContent);

// ---- elements ----

const SVG = "http://www.w3.org/2000/svg";
function fill(e, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(name, value);
  e.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false && c !== ""));
  return e;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const paint = category => `var(--${category})`;
const round = x => Math.round(x * 10) / 10;

// ---- numbers ----

const whole = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
function scaled(n, units, step) {
  let i = 0;
  while (Math.abs(n) >= step && i + 1 < units.length) { n /= step; i++; }
  const text = i === 0 ? whole(n) : n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1).replace(/\.0$/, "") : n.toFixed(2).replace(/\.?0+$/, "");
  return text + (units[i] && "\u00a0" + units[i]);
}
const bytes = n => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const count = n => scaled(n, ["", "thousand", "million", "billion", "trillion"], 1000);
const rate = (n, unit) => scaled(n, [unit, "k" + unit, "M" + unit, "G" + unit, "T" + unit, "P" + unit], 1000);
const duration = s => s >= 1 ? `${round(s)}\u00a0s` : s >= 1e-3 ? `${round(s * 1e3)}\u00a0ms` : s >= 1e-6 ? `${round(s * 1e6)}\u00a0µs` : `${Math.max(1, Math.round(s * 1e9))}\u00a0ns`;
const plural = (n, word) => `${whole(n)}\u00a0${word}${n === 1 ? "" : "s"}`;
const percent = x => x >= 0.995 ? "100%" : x >= 0.1 ? (100 * x).toFixed(0) + "%" : (100 * x).toFixed(1) + "%";
