/* One step from zero on facts whose frequencies follow a power law: the gradient, and what Newton and Schulz make of it.

   Formulas: flbook/lectures/training_strategies/spectral_steps/stored_facts.py and response.py, flbook/training/orthogonalised.py. */
(live => {
"use strict";
const {random, short, axes} = live;

function frequencies(N, alpha) {
  const p = Array.from({length: N}, (_, i) => (i + 1) ** -alpha), total = p.reduce((sum, x) => sum + x, 0);
  return p.map(x => x / total);
}
function sphere(N, d, {normal}) { // N unit vectors, one row after the other
  const x = Float64Array.from({length: N * d}, normal);
  for (let i = 0; i < N; i++) {
    const row = x.subarray(i * d, i * d + d), length = Math.hypot(...row);
    for (let a = 0; a < d; a++) row[a] /= length;
  }
  return x;
}
function gradient(inputs, outputs, p, d) { // minus the gradient at zero, by rows
  const N = p.length, mean = new Float64Array(d), G = new Float64Array(d * d);
  for (let i = 0; i < N; i++) for (let a = 0; a < d; a++) mean[a] += outputs[i * d + a] / N;
  for (let i = 0; i < N; i++) for (let a = 0; a < d; a++) {
    const u = p[i] * (outputs[i * d + a] - mean[a]);
    for (let b = 0; b < d; b++) G[a * d + b] += u * inputs[i * d + b];
  }
  return G;
}

/* Singular values and bases by Jacobi's rotations of pairs of columns, kept as rows: left[k] times s[k] is G right[k]. */
function decompose(G, d) {
  const left = Array.from({length: d}, (_, b) => Float64Array.from({length: d}, (_, a) => G[a * d + b]));
  const right = Array.from({length: d}, (_, b) => Float64Array.from({length: d}, (_, a) => +(a === b)));
  const dot = (x, y) => { let sum = 0; for (let a = 0; a < d; a++) sum += x[a] * y[a]; return sum; };
  const turn = (x, y, c, s) => { for (let a = 0; a < d; a++) { const z = x[a]; x[a] = c * z - s * y[a]; y[a] = s * z + c * y[a]; } };
  for (let sweep = 0, off = 1; sweep < 30 && off > 1e-12; sweep++) {
    off = 0;
    for (let i = 0; i < d; i++) for (let j = i + 1; j < d; j++) {
      const one = dot(left[i], left[i]), two = dot(left[j], left[j]), both = dot(left[i], left[j]), size = Math.abs(both) / Math.sqrt(one * two);
      off = Math.max(off, size);
      if (size < 1e-15) continue;
      const z = (two - one) / (2 * both), t = (z < 0 ? -1 : 1) / (Math.abs(z) + Math.sqrt(1 + z * z)), c = 1 / Math.sqrt(1 + t * t);
      turn(left[i], left[j], c, c * t);
      turn(right[i], right[j], c, c * t);
    }
  }
  const order = left.map((x, k) => [Math.sqrt(dot(x, x)), k]).sort((x, y) => y[0] - x[0]);
  return {s: order.map(([s]) => s), left: order.map(([s, k]) => left[k].map(x => x / s)), right: order.map(([, k]) => right[k])};
}
const EXACT = 12; // the last place of the slider
function made(s, steps) { // singular values of the step
  if (steps >= EXACT) return s.map(() => 1);
  const length = Math.hypot(...s);
  return s.map(x => {
    let y = x / length;
    for (let k = 0; k < steps; k++) y = 3.4445 * y - 4.7750 * y ** 3 + 2.0315 * y ** 5;
    return y;
  });
}
function memory({left, right}, f, d) {
  const W = new Float64Array(d * d);
  f.forEach((size, k) => { for (let a = 0; a < d; a++) for (let b = 0; b < d; b++) W[a * d + b] += size * left[k][a] * right[k][b]; });
  return W;
}
function recall(W, inputs, outputs, N, d) { // own logits, and is each the largest? A fact that has failed is asked no more
  const own = [], stored = [], x = new Float64Array(d);
  for (let i = 0; i < N; i++) {
    for (let a = 0; a < d; a++) { x[a] = 0; for (let b = 0; b < d; b++) x[a] += W[a * d + b] * inputs[i * d + b]; }
    const logit = j => { let sum = 0; for (let a = 0; a < d; a++) sum += outputs[j * d + a] * x[a]; return sum; };
    const mine = logit(i);
    let best = true;
    for (let j = 0; best && j < N; j++) best = j === i || logit(j) < mine;
    own.push(mine);
    stored.push(best);
  }
  return {own, stored};
}

// ---- theory: the signal of the exact step from the frequencies alone
function response(p, d, at) {
  const crowding = tau => p.reduce((sum, x) => sum + (x * tau) ** 2 / (1 + (x * tau) ** 2), 0) / d;
  let low = 0, high = 60;
  for (let k = 0; k < 60; k++) { const middle = (low + high) / 2; crowding(Math.exp(middle)) < 1 ? low = middle : high = middle; }
  const top = Math.exp(low), ratio = (from, to, k) => from * (to / from) ** (k / 199), places = [...Array(200).keys()];
  const tau = [...places.map(k => top * (1 - ratio(1e-6, 0.5, k))), ...places.slice(1).map(k => top * ratio(0.5, 0.5e-9, k))], t = tau.map(x => (1 - crowding(x)) / x);
  return at.map(q => {
    const rate = tau.map(x => q * x * x / (1 + (q * x) ** 2));
    let sum = rate[0] * t[0];
    for (let k = 1; k < t.length; k++) sum += (rate[k] + rate[k - 1]) / 2 * (t[k] - t[k - 1]);
    return 2 / Math.PI * sum;
  });
}

// ---- the figure
function mount(box, given = {}) {
  const first = {alpha: 2, d: 48, steps: 5, seed: 0, ...given};
  let kept = {};

  function drawn({alpha, d, seed}) {
    const N = Math.round(4 * d ** (1 + 1 / (2 * alpha))), p = frequencies(N, alpha), stream = random(seed, "facts");
    const inputs = sphere(N, d, stream), outputs = sphere(N, d, stream), parts = decompose(gradient(inputs, outputs, p, d), d);
    const count = f => recall(memory(parts, f, d), inputs, outputs, N, d).stored.filter(Boolean).length;
    const ranks = Array.from({length: 25}, (_, k) => Math.round(N ** (k / 24))).filter((r, k, all) => r !== all[k - 1]);
    const signal = response(p, d, ranks.map(r => p[r - 1]));
    return {N, d, inputs, outputs, parts, exact: count(made(parts.s, EXACT)), plain: count(parts.s), theory: ranks.map((r, k) => [r, signal[k]])};
  }
  function compute(v) {
    const key = [v.alpha, v.d, v.seed].join();
    if (kept.key !== key) kept = {key, ...drawn(v)};
    const {N, d, inputs, outputs, parts} = kept, f = made(parts.s, v.steps);
    return {...kept, f, steps: v.steps, ...recall(memory(parts, f, d), inputs, outputs, N, d)};
  }

  live.figure(box, {
    label: "Live figure: one orthogonalised step stores facts",
    controls: [
      {name: "alpha", kind: "range", label: "power α", min: 1.1, max: 2.5, step: 0.1, value: first.alpha},
      {name: "d", kind: "range", label: "dimension d", min: 16, max: 64, step: 8, value: first.d},
      {name: "steps", kind: "range", label: "Newton–Schulz steps", min: 1, max: EXACT, step: 1, value: first.steps, show: v => v >= EXACT ? "exact" : String(v)},
      {name: "seed", rest: true, kind: "range", label: "draw", min: 0, max: 20, step: 1, value: first.seed},
    ],
    panels: [
      {caption: 'Singular values of <b style="color:var(--noise)">the gradient (dashes)</b>, over its norm, and of <b style="color:var(--signal)">the step (thick)</b>.'},
      {caption: 'The own logit of every fact over its rank: <b style="color:var(--signal)">stored (filled)</b> or <b style="color:var(--soft)">not (rings)</b>. Dashed: theory of the exact step.'},
    ],
    compute,
    draw: (view, now) => { spectrum(view, now); facts(view, now); say(view, now); },
  });

  function spectrum(view, {d, parts: {s}, f}) {
    const length = Math.hypot(...s), a = axes({x: [1, d], y: [1e-5, 3], logy: true, xlabel: "singular value, by size"});
    const clip = list => list.map((y, k) => [k + 1, Math.max(y, 1e-5)]);
    view.svg(0, a.frame() + a.line(clip(s.map(x => x / length)), {colour: "noise", width: 2, dash: "6 3"}) + a.line(clip(f), {colour: "signal", width: 3}),
      `Singular values of the gradient from ${short(s[0] / length)} to ${short(s[d - 1] / length)}, of the step from ${short(Math.max(...f))} to ${short(Math.min(...f))}.`);
  }
  function facts(view, {N, own, stored, theory}) {
    const a = axes({x: [1, N], y: [1e-3, 2], logx: true, logy: true, xlabel: "rank of the fact", ylabel: "own logit"}), clip = y => Math.min(Math.max(y, 1e-3), 2);
    const circle = (i, how) => `<circle cx="${a.px(i + 1).toFixed(1)}" cy="${a.py(clip(own[i])).toFixed(1)}" r="2.6" ${how}/>`;
    const rings = own.map((_, i) => stored[i] ? "" : circle(i, 'fill="none" stroke="var(--soft)" stroke-width=".7"')).join("");
    const filled = own.map((_, i) => stored[i] ? circle(i, 'fill="var(--signal)"') : "").join("");
    view.svg(1, a.frame() + rings + filled + a.line(theory.map(([r, h]) => [r, clip(h)]), {colour: "ink", width: 2, dash: "6 3"}),
      `Own logits of ${N} facts over their rank; ${stored.filter(Boolean).length} are stored.`);
  }
  function say(view, {N, d, stored, steps, exact, plain}) {
    const count = stored.filter(Boolean).length, start = `One step stores ${count} of ${N} facts in ${d} dimensions; the gradient itself ${plain}. `;
    view.say(start + (steps >= EXACT ? "All singular values of this step are one." :
      count < 0.85 * exact ? `So few steps leave rare facts too quiet: the exact step stores ${exact}.` : `These steps are enough: the exact step stores ${exact}.`));
  }
}

live.spectral = {frequencies, sphere, gradient, decompose, made, memory, recall, response, mount};
})(globalThis.flbookLive);
