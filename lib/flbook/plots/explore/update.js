/* Networks of two hidden layers and four widths, trained for a few steps: start and rates follow powers of the width that the reader turns.

   Formulas: flbook/lectures/representation/maximal_update/two_hidden_layers.py; exponents: flbook/training/parametrisation.py. */
(live => {
"use strict";
const {random, short, axes} = live;
const WIDTHS = [32, 64, 128, 256], BASE = 32, D = 8, N = 6, STEPS = 6, RATE = 0.05, LAYERS = ["z₁", "z₂", "f"];
const COLOURS = ["linear", "test", "signal", "network"], DASHES = ["2 2.5", "5 3", "9 3", ""];

/* Exponents of the change by one step of gradient descent: output weights n^-p, rates n^r1, n^r2, n^r3. */
const moved = ({p, r1, r2, r3}) => [r1 - p, Math.max(r2 + 1 - p, r1 - p), Math.max(r3 + 1, r2 + 2 - 2 * p, r1 + 1 - 2 * p)];

function times(x, A, n, d) { // rows of x times the transpose of A (n x d): one row of n numbers for each
  return x.map(row => Float64Array.from({length: n}, (_, i) => { let s = 0; for (let j = 0, at = i * d; j < d; j++) s += A[at + j] * row[j]; return s; }));
}
function outputs({U, W, V}, x) {
  const n = V.length, z1 = times(x, U, n, x[0].length), h1 = z1.map(row => row.map(Math.tanh)), z2 = times(h1, W, n, n), h2 = z2.map(row => row.map(Math.tanh));
  return {z1, h1, z2, h2, f: h2.map(row => row.reduce((s, v, i) => s + v * V[i], 0))};
}
const rms = (now, old) => {
  let sum = 0, count = 0;
  now.forEach((row, k) => row.forEach((v, i) => { sum += (v - old[k][i]) ** 2; count++; }));
  return Math.sqrt(sum / count);
};
/* Root mean square change of z1, z2 and f after each step: three lists. What the start says is subtracted. */
function train(start, x, y, lr, steps) {
  const w = {U: Float64Array.from(start.U), W: Float64Array.from(start.W), V: Float64Array.from(start.V)}, n = w.V.length, d = x[0].length;
  const before = outputs(w, x), found = [[], [], []], target = y.map((v, k) => v + before.f[k]);
  for (let t = 0, now = before; t < steps; t++) {
    const change = {U: new Float64Array(n * d), W: new Float64Array(n * n), V: new Float64Array(n)};
    x.forEach((input, k) => {
      const r = (now.f[k] - target[k]) / x.length, h1 = now.h1[k], h2 = now.h2[k], back = new Float64Array(n);
      for (let i = 0; i < n; i++) {
        const delta = r * w.V[i] * (1 - h2[i] ** 2);
        change.V[i] += r * h2[i];
        for (let j = 0, at = i * n; j < n; j++, at++) { change.W[at] += delta * h1[j]; back[j] += delta * w.W[at]; }
      }
      for (let i = 0; i < n; i++) { const delta = back[i] * (1 - h1[i] ** 2); for (let j = 0; j < d; j++) change.U[i * d + j] += delta * input[j]; }
    });
    for (const [name, rate] of [["U", lr[0]], ["W", lr[1]], ["V", lr[2]]]) for (let i = 0; i < w[name].length; i++) w[name][i] -= rate * change[name][i];
    now = outputs(w, x);
    found[0].push(rms(now.z1, before.z1));
    found[1].push(rms(now.z2, before.z2));
    found[2].push(rms([now.f], [before.f]));
  }
  return found;
}

// ---- the draws of a seed: the same inputs for all widths
function draw(seed) {
  const {normal} = random(seed, "inputs"), x = Array.from({length: N}, () => {
    const row = Array.from({length: D}, normal), long = Math.hypot(...row);
    return row.map(v => v / long);
  });
  const nets = WIDTHS.map(n => {
    const stream = random(seed, "weights " + n), list = (count, size) => Float64Array.from({length: count}, () => size * stream.normal());
    return {U: list(n * D, 1), W: list(n * n, n ** -0.5), V: list(n, BASE ** -0.5)};
  });
  return {x, y: x.map((_, k) => k % 2 ? -1 : 1), nets};
}

// ---- the figure
const KNOWN = {standard: [0.5, 0, 0, 0], slow: [0.5, -1, -1, -1], tangent: [0.5, 0, -1, -1], maximal: [1, 1, 0, -1], plain: [0.5, 1, 0, 0]};
const NAMES = {own: "your own", standard: "standard", slow: "standard, rate/n", tangent: "neural tangent", maximal: "maximal update", plain: "no multiplier"};
function mount(box, given = {}) {
  const first = {p: 0.5, r1: 0, r2: -1, r3: -1, seed: 0, ...given};
  let kept = {};

  function compute(v) {
    if (kept.seed !== v.seed) kept = {seed: v.seed, ...draw(v.seed)};
    const curves = WIDTHS.map((n, k) => {
      const m = n / BASE, {U, W, V} = kept.nets[k];
      return train({U, W, V: V.map(one => one * m ** -v.p)}, kept.x, kept.y, [v.r1, v.r2, v.r3].map(r => RATE * m ** r), STEPS);
    });
    const slopes = [0, 1, 2].map(l => Math.log(curves[WIDTHS.length - 1][l][0] / curves[0][l][0]) / Math.log(WIDTHS[WIDTHS.length - 1] / BASE));
    return {curves, slopes, theory: moved(v)};
  }

  const signed = v => (v > 0 ? "+" : "") + short(+v.toFixed(2)), how = v => v > 0.02 ? "grows" : v < -0.02 ? "fades" : "stays";
  const power = (name, symbol, value, low, high, more = {}) => ({name, kind: "range", label: symbol, min: low, max: high, step: 0.125, value, show: v => signed(v), ...more});
  const view = live.figure(box, {
    label: "Live figure: four widths, and the powers by which start and rates depend on them",
    controls: [
      {...power("p", "output size n⁻ᵖ, p", first.p, 0, 1.5), show: v => short(v)},
      power("r1", "rate of U, nʳ, r₁", first.r1, -2, 2), power("r2", "rate of W, nʳ, r₂", first.r2, -2, 2), power("r3", "rate of V, nʳ, r₃", first.r3, -2, 2),
      {name: "like", rest: true, kind: "choice", label: "exponents of", choices: NAMES, value: "own"},
      {name: "seed", rest: true, kind: "range", label: "weights drawn", min: 0, max: 9, step: 1, value: first.seed},
    ],
    panels: LAYERS.map((name, l) => ({caption: `Change of ${name} over the steps. Widths ${WIDTHS.map((n, k) => `<b style="color:var(--${COLOURS[k]})">${n}</b>`).join(", ")}, from dots to a full line${l ? "." : ": do they fan out, or fall together?"}`})),
    compute,
    draw: (v, now) => { LAYERS.forEach((_, l) => panel(v, now, l)); say(v, now); },
  });
  box.addEventListener("input", e => { // a name sets the powers; a power that is turned by hand has no name
    const list = KNOWN[e.target.name === "like" ? e.target.value : ""];
    if (list) ["p", "r1", "r2", "r3"].forEach((name, k) => view.set(name, list[k]));
    else if (/^(p|r\d)$/.test(e.target.name)) view.set("like", "own");
  });

  function panel(v, {curves, slopes}, l) {
    const all = curves.flatMap(c => c[l]).filter(y => y > 0 && isFinite(y)), low = 10 ** Math.max(Math.floor(Math.log10(Math.min(...all))), -7), high = 10 ** Math.min(Math.ceil(Math.log10(Math.max(...all)) + 1e-9), 4);
    const a = axes({x: [1, STEPS], y: [low, Math.max(high, 10 * low)], logy: true, xlabel: "steps", ylabel: `change of ${LAYERS[l]}`});
    v.svg(l, a.frame() + curves.map((c, k) => a.line(c[l].map((y, t) => [t + 1, Math.min(Math.max(isFinite(y) ? y : high, low), high)]), {colour: COLOURS[k], width: 2.5, dash: DASHES[k]})).join(""),
      `Change of ${LAYERS[l]} after one step: ${curves.map((c, k) => `width ${WIDTHS[k]}: ${short(+c[l][0].toPrecision(2))}`).join(", ")}; it ${how(slopes[l])} with the width.`);
  }

  function say(v, {slopes, theory}) {
    const [one, two, out] = theory, top = Math.max(...theory), zero = x => Math.abs(x) < 1e-9;
    const regime = top > 1e-9 ? `Unstable: with the width ${LAYERS.filter((_, l) => theory[l] > 1e-9).join(" and ")} ${theory.filter(x => x > 1e-9).length > 1 ? "explode" : "explodes"}.`
      : theory.every(zero) ? "Every layer moves alike at every width, and so does the output: features are learned, up to infinite width."
      : !zero(out) ? "Wide networks do not learn at all: their output stands still."
      : one < -1e-9 && two < -1e-9 ? "Lazy: the output moves at every width, the hidden layers of wide networks stand still. A kernel method."
      : `The output moves at every width, but ${one < -1e-9 ? "z₁" : "z₂"} stands still in wide networks: half of the features are learned.`;
    v.say(`${regime} Exponents of the width, by theory: ${theory.map((x, l) => `${LAYERS[l]} ${signed(x)}`).join(", ")}; measured after one step: ${slopes.map(signed).join(", ")}.`);
  }
}

live.update = {moved, train, draw, mount};
})(globalThis.flbookLive);
