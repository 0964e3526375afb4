/* The rate of a two-layer linear network at four widths, in three parametrisations: its risk over the rate, and its kernel along the target over training.

   The network is followed in the inner products of its neurons, exactly, so that 65536 neurons cost what 16 do.
   Formulas: flbook/lectures/representation/rate_transfer/width_moments.py. */
(live => {
"use strict";
const {random, bartlett, short, axes} = live;
const D = 5, WIDTHS = [16, 256, 4096, 65536], LOOKS = [["linear", 1.5, "2 2"], ["test", 2, "6 3"], ["signal", 2.5, ""], ["network", 4, ""]];
const RATES = Array.from({length: 137}, (_, k) => 2 ** (-16.5 + k / 8)), DIVERGED = 1e6;
const each = f => Array.from({length: D}, (_, i) => f(i)), dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

/* Neurons in pairs of opposite sign, drawn by Bartlett's decomposition: M, q and s over the width. */
function start(width, seed) {
  const count = width / 2, rows = bartlett(D + 1, count, random(seed, "pairs of neurons"));
  const inner = (i, j) => rows[i].reduce((sum, x, k) => sum + x * (rows[j][k] || 0), 0) / count;
  return {M: each(i => each(j => inner(i, j))), q: each(() => 0), s: inner(D, D)};
}
function scale(name, width) { return {gamma: name === "maximal" ? 1 : width ** -0.5, ratio: name === "standard" ? width : 1}; }
function after({M, q, s}, e, g, gv) {
  const Me = M.map(row => dot(row, e)), along = dot(e, q);
  return {M: M.map((row, i) => row.map((x, j) => x + g * (q[i] * e[j] + e[i] * q[j]) + g * g * s * e[i] * e[j])),
    q: q.map((x, i) => x + (g * s + g * gv * along) * e[i] + gv * Me[i]), s: s + 2 * gv * along + gv * gv * dot(e, Me)};
}
/* Risk over its start, and the tangent kernel along the target (of U's own rate: output weights count `ratio` times), before every step and at the end. */
function train(begin, name, width, target, rate, steps) {
  const {gamma, ratio} = scale(name, width), g = rate * gamma, length = Math.hypot(...target), u = target.map(x => x / length);
  const risk = [], kernel = [];
  for (let t = 0, now = begin; t <= steps; t++) {
    const e = target.map((x, i) => x - now.q[i] / gamma), loss = dot(e, e) / length ** 2;
    risk.push(loss < DIVERGED ? loss : DIVERGED);
    kernel.push(now.s + ratio * dot(u, now.M.map(row => dot(row, u))));
    if (!(loss < DIVERGED)) break;
    now = after(now, e, g, g * ratio);
  }
  return {risk, kernel};
}
function sweep(begin, name, width, target, steps) { return RATES.map(rate => { const {risk} = train(begin, name, width, target, rate, steps); return risk[risk.length - 1]; }); }
function best(losses) { return RATES[losses.indexOf(Math.min(...losses))]; }

// ---- the figure
const NAMES = {standard: "standard: one rate", tangent: "neural tangent", maximal: "maximal update"};
function mount(box, given = {}) {
  const first = {parametrisation: "standard", length: 2, steps: 8, rate: 0.2, seed: 0, ...given};
  const legend = WIDTHS.map((n, k) => `<b style="color:var(--${LOOKS[k][0]})">${n} ${["(dots)", "(dashes)", "(line)", "(thick)"][k]}</b>`).join(", ");

  function compute(v) {
    const target = each(i => i ? 0 : v.length), starts = WIDTHS.map(n => start(n, v.seed));
    const losses = starts.map((begin, k) => sweep(begin, v.parametrisation, WIDTHS[k], target, v.steps));
    const paths = starts.map((begin, k) => train(begin, v.parametrisation, WIDTHS[k], target, v.rate, v.steps));
    return {losses, paths, found: losses.map(best)};
  }

  live.figure(box, {
    label: "Live figure: the rate of a linear network at four widths",
    controls: [
      {name: "parametrisation", kind: "choice", label: "parametrisation", choices: NAMES, value: first.parametrisation},
      {name: "length", kind: "range", label: "target |b∗|", min: 0.2, max: 3, step: 0.1, value: first.length},
      {name: "steps", kind: "range", label: "steps", min: 1, max: 30, step: 1, value: first.steps},
      {name: "rate", kind: "range", label: "rate η in (b)", log: true, min: 1e-5, max: 1, step: 0.05, value: first.rate, show: v => short(+v.toPrecision(2))},
      {name: "seed", rest: true, kind: "range", label: "start", min: 0, max: 20, step: 1, value: first.seed},
    ],
    panels: [
      {caption: `Risk after these steps over the rate, 1 at the start. Neurons: ${legend}.`},
      {caption: "Sharpness over the steps at the rate of (b), for the same widths. Thin: 2/η, above which a minimum is not stable."},
    ],
    compute,
    draw: (view, now, v) => { risks(view, now); sharpness(view, now, v); say(view, now, v); },
  });

  function risks(view, {losses, found}) {
    const low = 1e-6, high = 100, a = axes({x: [1e-5, 2], y: [low, high], logx: true, logy: true, xlabel: "rate η", ylabel: "risk"});
    const inside = curve => RATES.map((r, k) => [r, Math.min(Math.max(curve[k], low), high)]).filter(([r]) => r >= 1e-5 && r <= 2);
    view.svg(0, a.frame() + losses.map((curve, k) => a.line(inside(curve), {colour: LOOKS[k][0], width: LOOKS[k][1], dash: LOOKS[k][2]})).join(""),
      `Risk over the rate at four widths; lowest at ${found.map(r => short(+r.toPrecision(2))).join(", ")}.`);
  }

  function sharpness(view, {paths}, v) {
    const edge = 2 / v.rate, all = paths.flatMap(p => p.kernel).filter(x => x < 1e8 && x > 0);
    const low = 1, high = Math.max(10, ...all, edge) * 1.5, a = axes({x: [0, v.steps], y: [low, high], logy: true, xlabel: "steps", ylabel: "kernel"});
    const clip = x => Math.min(Math.max(x, low), high);
    view.svg(1, a.frame() + a.line([[0, clip(edge)], [v.steps, clip(edge)]], {colour: "ink", width: 1.2}) +
      paths.map((p, k) => a.line(p.kernel.map((x, t) => [t, clip(x || high)]), {colour: LOOKS[k][0], width: LOOKS[k][1], dash: LOOKS[k][2]})).join(""),
      `Sharpness after ${v.steps} steps at four widths: ${paths.map(p => short(+p.kernel[p.kernel.length - 1].toPrecision(3))).join(", ")}; 2 over the rate is ${short(+edge.toPrecision(3))}.`);
  }

  function say(view, {found, paths}, v) {
    const shift = found[1] / found[3], kernel = paths[3].kernel, grown = kernel[kernel.length - 1] / kernel[0], text = x => short(+x.toPrecision(2));
    view.say(`From 256 to 65536 neurons the best rate goes from ${text(found[1])} to ${text(found[3])}. ` +
      (shift > 8 ? "It does not transfer: what is tuned on the small network lets the large one diverge." : "It transfers.") +
      (shift > 8 ? "" : grown > 1.05 && grown < 1e3 ? " And the widest network's kernel has moved: it learns features." : " And the widest network's kernel stays: its features do, too."));
  }
}

live.transfer = {start, train, sweep, best, RATES, mount};
})(globalThis.flbookLive);
