/* What the live figures share: random streams, Gram matrices drawn without a d-dimensional vector, controls, axes, colours.
   Plain JavaScript, no library, no request. A figure calls `live.figure(box, plan)` and draws into the panels it gets back. */
(root => {
"use strict";
if (root.flbookLive) return; // a page with two figures carries it twice

// ---- randomness: a stream is a function of (seed, role)
function random(seed, role) {
  let h = 2166136261;
  for (const c of seed + "|" + role) h = Math.imul(h ^ c.charCodeAt(0), 16777619);
  const s = Int32Array.of(h, h ^ 0x9e3779b9, h ^ 0x243f6a88, 1);
  const uniform = () => { // sfc32
    const b = s[1], c = s[2], t = (s[0] + b | 0) + s[3] | 0;
    s[0] = b ^ (b >>> 9); s[1] = c + (c << 3) | 0; s[2] = (c << 21 | c >>> 11) + t | 0; s[3] = s[3] + 1 | 0;
    return (t >>> 0) / 4294967296;
  };
  for (let i = 0; i < 20; i++) uniform();
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  const gamma = shape => { // Marsaglia and Tsang 2000; a shape below 1 is raised by one and scaled back
    if (shape < 1) return gamma(shape + 1) * (1 - uniform()) ** (1 / shape);
    const q = shape - 1 / 3, c = 1 / Math.sqrt(9 * q);
    for (;;) {
      const x = normal(), v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(1 - uniform()) < x * x / 2 + q - q * v + q * Math.log(v)) return q * v;
    }
  };
  return {uniform, normal, gamma};
}

/* Inner products of `count` standard normal vectors in d dimensions, by Bartlett's triangular factor: an array of rows, none longer than d. */
function bartlett(count, d, {normal, gamma}) {
  const rows = [];
  for (let i = 0; i < count; i++) {
    rows.push(Float64Array.from({length: Math.min(i + 1, d)}, (_, j) => j < i ? normal() : Math.sqrt(2 * gamma((d - i) / 2))));
  }
  return rows;
}

function cholesky(A, k, raise = 1e-10) { // of A with its diagonal raised by a factor 1 + raise
  const L = new Float64Array(k * k);
  for (let i = 0; i < k; i++) for (let j = 0; j <= i; j++) {
    let s = A[i * k + j] * (i === j ? 1 + raise : 1);
    for (let p = 0; p < j; p++) s -= L[i * k + p] * L[j * k + p];
    L[i * k + j] = i === j ? Math.sqrt(Math.max(s, 1e-300)) : s / L[j * k + j];
  }
  return L;
}

// ---- numbers in words
const raised = n => String(n).replace(/[-0-9]/g, c => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
const power = e => "10" + raised(e);
function short(x) {
  const size = Math.abs(x);
  if (size < 1e4 && (size >= 1e-3 || size === 0)) return String(+x.toPrecision(3)).replace("-", "−");
  const [lead, e] = x.toExponential(1).split("e").map(Number); // rounds first, so that no lead is 10
  return (lead === 1 ? "" : String(lead).replace("-", "−") + "·") + power(e);
}
const errorOf = margins => margins.reduce((sum, x) => sum + (x < 0) + (x === 0) / 2, 0) / margins.length;

// ---- colours: those of the book's figures, by name, and their variants on a dark ground
const LIGHT = "--ink:#1a1a1a;--soft:#5a5f66;--ground:#fff;--edge:#d0d4d9;--signal:#0072b2;--noise:#c24f00;--test:#007a59;--network:#328;--lazy:#a37;--kernel:#b0413e;--linear:#8a6a00;color-scheme:light";
const DARK = "--ink:#e8e8e8;--soft:#a9b0b8;--ground:#1b1e23;--edge:#444a52;--signal:#6cb8e6;--noise:#f2a36b;--test:#4fd1a5;--network:#aca0f5;--lazy:#e79ac4;--kernel:#f28b8b;--linear:#d9b84a;color-scheme:dark";
const CSS = `.fll{${LIGHT};color:var(--ink);background:var(--ground);border:1px solid var(--edge);border-radius:.4em;padding:.8em;margin:1em 0;
font:15px/1.45 system-ui,sans-serif;box-sizing:border-box}
:is(html[data-theme=dark],html[theme=dark],body[data-jp-theme-light=false]) .fll{${DARK}}
@media (prefers-color-scheme:dark){html:not([data-theme]):not([theme]) body:not([data-jp-theme-light]) .fll{${DARK}}}
.fll *{box-sizing:border-box}.fll-bar{display:grid;grid-template-columns:repeat(auto-fit,minmax(10em,1fr));gap:.3em 1.2em;align-items:end}
.fll label{display:block;margin:0;color:var(--ink)}.fll output{font-weight:600}.fll input[type=range]{display:block;width:100%;height:28px;margin:0;accent-color:var(--signal)}
.fll :is(button,select){font:inherit;min-height:32px;padding:.15em .7em;color:var(--ink);background:var(--ground);border:1px solid var(--soft);border-radius:.3em}
.fll :is(button,select,input,canvas,[tabindex]):focus-visible{outline:3px solid var(--signal);outline-offset:2px}
.fll-buttons{display:flex;flex-wrap:wrap;gap:.5em .8em;align-items:center;margin:.4em 0}
.fll-panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(15em,100%),1fr));gap:.6em 1.2em;margin:.5em 0}
.fll-panels{counter-reset:panel}.fll figure{margin:0;text-align:left;counter-increment:panel}.fll figcaption::before{content:"(" counter(panel,lower-alpha) ") "}
.fll.fll figcaption{font-size:13.5px;line-height:1.4;color:var(--soft);text-align:left;margin:.2em 0 0;padding:0}
.fll :is(svg,canvas){display:block;width:100%;height:auto;overflow:visible}.fll canvas{cursor:crosshair}
.fll svg text{font-size:13.5px;fill:var(--ink)}.fll-say{min-height:2.9em;margin:.4em 0 0;color:var(--ink)}.fll-fold{display:none}
@media (max-width:600px){.fll-fold{display:block}.fll:not(.fll-all) .fll-rest{display:none}:is(.fll-bar,.fll-buttons){display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5em,1fr));align-items:end}.fll select{width:100%}
.fll-panels{display:flex;overflow-x:auto;scroll-snap-type:x proximity}.fll-panels>figure{flex:0 0 88%;scroll-snap-align:start}}`;

// ---- axes: a plain object that turns values into SVG
const W = 260, H = 190, LEFT = 38, RIGHT = 8, TOP = 8, BOTTOM = 38;
function axes({x, y, logx = false, logy = false, xlabel = "", ylabel = "", xticks, yticks}) {
  const lin = (v, [lo, hi], log) => log ? (Math.log10(v) - Math.log10(lo)) / Math.log10(hi / lo) : (v - lo) / (hi - lo);
  const clip = t => Math.min(Math.max(t, 0), 1);
  const px = v => LEFT + (W - LEFT - RIGHT) * lin(v, x, logx), py = v => H - BOTTOM - (H - BOTTOM - TOP) * clip(lin(v, y, logy));
  const d = points => "M" + points.map(([a, b]) => px(a).toFixed(1) + " " + py(b).toFixed(1)).join("L");
  const style = ({colour = "ink", width = 2, dash = ""}) => `stroke="var(--${colour})" stroke-width="${width}"${dash && ` stroke-dasharray="${dash}"`}`;
  const words = (left, top, s, more = "") => `<text x="${left.toFixed(1)}" y="${top.toFixed(1)}" ${more}>${s}</text>`;
  const decades = ([lo, hi]) => {
    const ticks = [], gap = Math.max(1, Math.ceil(Math.log10(hi / lo) / 5));
    for (let e = Math.ceil(Math.log10(lo) - 1e-9); e <= Math.log10(hi) + 1e-9; e += gap) ticks.push([10 ** e, power(e)]);
    return ticks;
  };
  const even = ([lo, hi]) => {
    const rough = (hi - lo) / 4, unit = 10 ** Math.floor(Math.log10(rough)), gap = [1, 2, 5, 10].find(k => k * unit >= rough) * unit, ticks = [];
    for (let v = Math.ceil(lo / gap - 1e-9) * gap; v <= hi + 1e-9 * gap; v += gap) ticks.push([v, short(+v.toFixed(12))]);
    return ticks;
  };
  const atX = xticks || (logx ? decades(x) : even(x)), atY = yticks || (logy ? decades(y) : even(y));
  return {
    px, py, words,
    frame: () => `<path d="M${LEFT} ${TOP}V${H - BOTTOM}H${W - RIGHT}" fill="none" stroke="var(--soft)"/>` +
      atX.map(([v, s]) => words(px(v), H - BOTTOM + 15, s, 'text-anchor="middle"')).join("") +
      atY.map(([v, s]) => words(LEFT - 4, py(v) + 4, s, 'text-anchor="end"')).join("") +
      words((W + LEFT) / 2, H - 4, xlabel, 'text-anchor="middle"') + (ylabel && words(LEFT + 4, TOP + 6, ylabel)),
    line: (points, how = {}) => points.length ? `<path fill="none" stroke-linejoin="round" d="${d(points)}" ${style(how)}/>` : "",
    crosses: (points, {colour = "noise"} = {}) => points.map(([a, b]) =>
      words(px(a), py(b) + 6, "×", `text-anchor="middle" style="fill:var(--${colour});font-size:19px"`)).join(""),
    bars: (edges, heights, {colour = "test"} = {}) => heights.map((h, i) => h ? `<rect x="${px(edges[i]).toFixed(1)}" y="${py(h).toFixed(1)}" ` +
      `width="${(px(edges[i + 1]) - px(edges[i])).toFixed(1)}" height="${(py(y[0]) - py(h)).toFixed(1)}" fill="var(--${colour})" opacity=".65"/>` : "").join(""),
    upright: (v, how = {}) => `<path d="M${px(v).toFixed(1)} ${TOP}V${H - BOTTOM}" ${style({colour: "soft", width: 1.5, ...how})}/>`,
  };
}

const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
function viridis(t) {
  t = Math.min(Math.max(t, 0), 1) * 4;
  const i = Math.min(t | 0, 3);
  return `rgb(${VIRIDIS[i].map((c, j) => Math.round(c + (VIRIDIS[i + 1][j] - c) * (t - i)))})`;
}

// ---- a figure: controls above panels above a sentence that says what is seen
/* plan: {label, controls: [control], panels: [{caption, canvas}], compute(values), draw(view, result, values), only: [names]}
   control: {name, label, kind: "range" | "choice" | "button", min, max, step, value, log, show(value), choices, act, late}
   A range with `log` moves in decades and gives 10^position. `compute` runs when a control moves, at most once a frame; controls named
   in `only` redraw without computing again; a `late` control stands below the panels. On a phone the panels lie side by side, to be
   swiped, and what is `rest` is folded. Returns the view, with `set` and `refresh`. */
function figure(box, plan) {
  box.classList.add("fll");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", plan.label);
  const folds = c => c.rest ? ' class="fll-rest"' : "";
  const html = c => c.kind === "button" ? `<button type="button" name="${c.name}"${folds(c)}>${c.label}</button>`
    : c.kind === "choice" ? `<label${folds(c)}>${c.label} <select name="${c.name}" autocomplete="off">${Object.entries(c.choices).map(([value, words]) => `<option value="${value}">${words}</option>`).join("")}</select></label>`
    : `<label${folds(c)}>${c.label} <output></output><input type="range" name="${c.name}" min="${c.log ? Math.log10(c.min) : c.min}" max="${c.log ? Math.log10(c.max) : c.max}" step="${c.step}" autocomplete="off"></label>`;
  const early = plan.controls.filter(c => !c.late), late = plan.controls.filter(c => c.late);
  const ranges = list => `<div class="fll-bar">${list.filter(c => c.kind === "range").map(html).join("")}</div>`;
  const others = early.filter(c => c.kind !== "range");
  const MORE = '<button type="button" class="fll-fold" aria-expanded="false">More controls</button>';
  box.innerHTML = `<style>${CSS}</style>${ranges(early)}<div class="fll-buttons">${others.map(html).join("")}${MORE}</div>` +
    `<div class="fll-panels" role="group" aria-label="Panels">${plan.panels.map(p => `<figure>${p.canvas ? `<canvas width="${2 * W}" height="${2 * H}" tabindex="0" role="img"></canvas>`
      : `<svg viewBox="0 0 ${W} ${H}" role="img"></svg>`}<figcaption>${p.caption}</figcaption></figure>`).join("")}</div>` +
    (late.length ? ranges(late) : "") + `<p class="fll-say" role="status"></p>`;
  const fold = box.querySelector(".fll-fold"), strip = box.querySelector(".fll-panels"), phone = matchMedia("(max-width:600px)");
  fold.onclick = () => {
    const open = box.classList.toggle("fll-all");
    fold.setAttribute("aria-expanded", open);
    fold.textContent = open ? "Fewer controls" : "More controls";
  };
  phone.onchange = () => phone.matches ? strip.tabIndex = 0 : strip.removeAttribute("tabindex"); // what scrolls must be reached by keys
  phone.onchange();
  const input = name => box.querySelector(`[name=${name}]`), named = name => plan.controls.find(c => c.name === name);
  const panels = [...box.querySelectorAll(".fll-panels > figure")].map(f => f.firstElementChild);
  const value = c => c.kind === "choice" ? input(c.name).value : c.log ? 10 ** +input(c.name).value : +input(c.name).value;
  const values = () => Object.fromEntries(plan.controls.filter(c => c.kind !== "button").map(c => [c.name, value(c)]));
  let result, waiting = 0, stale = true;
  const label = () => {
    for (const c of plan.controls) if (c.kind === "range") {
      const words = (c.show || short)(value(c), result);
      input(c.name).previousElementSibling.textContent = words;
      input(c.name).setAttribute("aria-valuetext", words);
    }
  };
  const view = {
    panels, values,
    svg: (i, body, words) => { panels[i].innerHTML = body; panels[i].setAttribute("aria-label", words); },
    say: words => { box.querySelector(".fll-say").textContent = words; },
    set: (name, v) => { input(name).value = named(name).log ? Math.log10(v) : v; },
    colour: name => getComputedStyle(box).getPropertyValue("--" + name).trim(),
    refresh(computing = true) {
      stale = stale || computing;
      if (!waiting) waiting = requestAnimationFrame(() => {
        waiting = 0;
        if (stale) result = plan.compute(values());
        stale = false;
        label();
        plan.draw(view, result, values());
      });
    },
  };
  for (const c of plan.controls) if (c.kind !== "button") view.set(c.name, c.value);
  for (const c of plan.controls) if (c.kind === "button") input(c.name).onclick = () => c.act(view);
  box.addEventListener("input", e => view.refresh(!(plan.only || []).includes(e.target.name)));
  new MutationObserver(() => result && view.refresh(false)).observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme", "theme"]});
  view.refresh();
  return view;
}

root.flbookLive = {random, bartlett, cholesky, short, errorOf, axes, viridis, figure, field: {W, H, LEFT, TOP, WIDE: W - LEFT - RIGHT, HIGH: H - TOP - BOTTOM}};
})(globalThis);
