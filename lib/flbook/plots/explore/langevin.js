/* Neurons with one weight each under gradient descent with noise, from two starts: finitely many of them, and the law of infinitely many.

   The law lives on a grid, with implicit steps and the fluxes of Scharfetter and Gummel. Names and formulas:
   flbook/lectures/in_context_learning/mean_field_langevin/fokker_planck.py, convergence.py and langevin.py. */
(live => {
"use strict";
const {random, short, axes, cholesky} = live;

const DECAY = 0.2, X = Array.from({length: 20}, (_, i) => -2 + 4 * i / 19), EDGE = 9, STEP = 0.05, END = 20, EVERY = 5; // steps between recorded times
const UNITS = { // h and its derivative in z = theta x (with h at hand), and the labels
  tanh: {h: Math.tanh, slope: (z, h) => 1 - h * h, y: x => 0.5 * Math.tanh(3 * x) + 0.3 * Math.sin(2 * x)},
  cos: {h: Math.cos, slope: z => -Math.sin(z), y: x => 1.5 * Math.cos(2 * x)},
  tilted: {h: z => Math.cos(z) + 0.3 * Math.sin(z), slope: z => -Math.sin(z) + 0.3 * Math.cos(z), y: x => 1.5 * Math.cos(2 * x)},
};

// ---- infinitely many neurons: cell probabilities on a grid
function grid(unit, lam, cells = 201) {
  const {h, y} = UNITS[unit], theta = Float64Array.from({length: cells}, (_, k) => -EDGE + 2 * EDGE * k / (cells - 1));
  const features = new Float64Array(cells * X.length); // a row of samples for each cell
  theta.forEach((t, k) => X.forEach((x, i) => { features[k * X.length + i] = h(t * x); }));
  return {theta, features, y: X.map(y), lam, cell: 2 * EDGE / (cells - 1)};
}
function normalised(logits) {
  const top = logits.reduce((a, b) => Math.max(a, b)), w = logits.map(v => Math.max(Math.exp(v - top), 1e-250)), mass = w.reduce((a, b) => a + b);
  return w.map(v => v / mass);
}
const start = ({theta}, mean, variance) => normalised(theta.map(t => -((t - mean) ** 2) / (2 * variance)));
function misses({features, y}, mu) { // f - y on the samples
  const f = y.map(v => -v);
  for (let k = 0, at = 0; k < mu.length; k++) for (let i = 0; i < f.length; i++) f[i] += mu[k] * features[at++];
  return f;
}
function forces(g, mu) { // the part of the potential that comes from the data
  const r = misses(g, mu), pull = new Float64Array(mu.length);
  for (let k = 0, at = 0; k < pull.length; k++) { for (let i = 0; i < r.length; i++) pull[k] += r[i] * g.features[at++]; pull[k] /= r.length; }
  return pull;
}
const potential = (g, mu) => forces(g, mu).map((v, k) => v + DECAY * g.theta[k] ** 2 / 2);
const half = r => r.reduce((sum, v) => sum + v * v, 0) / (2 * r.length);
const energy = (g, mu) => half(misses(g, mu)) + DECAY / 2 * mu.reduce((sum, p, k) => sum + p * g.theta[k] ** 2, 0);
const entropy = (g, mu) => mu.reduce((sum, p) => sum + p * Math.log(Math.max(p, 2.2250738585072014e-308)), 0) - Math.log(g.cell); // E log mu
const objective = (g, mu) => energy(g, mu) + g.lam * entropy(g, mu);
const bernoulli = z => Math.abs(z) < 1e-5 ? 1 - z / 2 : z / Math.expm1(z);
function solve(main, below, above, right) { // a system with three diagonals
  const n = main.length, c = new Float64Array(n), v = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    const pivot = main[k] - (k ? below[k - 1] * c[k - 1] : 0);
    if (k < n - 1) c[k] = above[k] / pivot;
    v[k] = (right[k] - (k ? below[k - 1] * v[k - 1] : 0)) / pivot;
  }
  for (let k = n - 2; k >= 0; k--) v[k] -= c[k] * v[k + 1];
  return v;
}
function step(g, mu, dt) { // implicit, in the potential of its start
  const V = potential(g, mu), n = mu.length, main = new Float64Array(n).fill(1), below = new Float64Array(n - 1), above = new Float64Array(n - 1), pace = g.lam * dt / g.cell ** 2;
  for (let k = 0; k < n - 1; k++) {
    const slope = (V[k + 1] - V[k]) / g.lam, out = pace * bernoulli(slope), back = pace * bernoulli(-slope);
    main[k] += out; main[k + 1] += back; below[k] = -out; above[k] = -back;
  }
  return solve(main, below, above, mu);
}
function flow(g, mu, dt = STEP, end = END, every = EVERY) { // the law at every recorded time
  const path = [mu];
  for (let t = 1; t <= Math.round(end / dt); t++) { mu = step(g, mu, dt); if (t % every === 0) path.push(mu); }
  return path;
}
const gibbs = (g, mu) => normalised(potential(g, mu).map(v => -v / g.lam));
function equilibrium(g, mu = start(g, 0, 1)) { // the fixed point mu = p_mu
  for (let k = 0; k < 3000; k++) {
    const p = gibbs(g, mu);
    let most = 0;
    mu = mu.map((v, j) => { const move = p[j] - v; most = Math.max(most, Math.abs(move)); return v + 0.05 * move; });
    if (most < 1e-11) break;
  }
  return gibbs(g, mu);
}
/* Guaranteed rate of the objective, 2 lam alpha: the larger of Holley and Stroock's (the data's part of the potential varies by B) and that of
   Bakry and Emery (the least curvature, where it is positive). */
function guaranteed(g, mu) {
  const data = forces(g, mu), V = data.map((v, k) => v + DECAY * g.theta[k] ** 2 / 2);
  let low = Infinity, high = -Infinity, bend = Infinity;
  for (let k = 0; k < V.length; k++) {
    low = Math.min(low, data[k]); high = Math.max(high, data[k]);
    if (k > 0 && k < V.length - 1) bend = Math.min(bend, (V[k - 1] - 2 * V[k] + V[k + 1]) / g.cell ** 2);
  }
  return {varies: 2 * DECAY * Math.exp(-(high - low) / g.lam), bends: 2 * Math.max(bend, 0)};
}
const best = ({varies, bends}) => Math.max(varies, bends);
function bound(g, path, gaps, gap = EVERY * STEP) { // on the objective above its minimum, from the guaranteed rates on the way
  const rates = path.map(mu => best(guaranteed(g, mu))), found = [gaps[0]];
  for (let k = 1; k < path.length; k++) found.push(found[k - 1] * Math.exp(-gap * Math.min(rates[k - 1], rates[k])));
  return found;
}
/* The slowest rate of the objective near its minimum: twice the least eigenvalue of A^(1/2) H A^(1/2), by inverse iteration. The three diagonals
   are neurons in a potential that is held, the rest, of rank 20, is the curvature of the loss (Woodbury). */
function slowest(g, end, rounds = 80) {
  const {lam, cell, features} = g, n = end.length - 1, q = X.length, bonds = new Float64Array(n), main = new Float64Array(n), side = new Float64Array(n - 1);
  for (let k = 0; k < n; k++) bonds[k] = Math.sqrt(end[k] * bernoulli(Math.log(end[k] / end[k + 1]))) / cell;
  for (let k = 0; k < n; k++) { main[k] = lam * bonds[k] ** 2 * (1 / end[k] + 1 / end[k + 1]); if (k) side[k - 1] = -lam * bonds[k - 1] * bonds[k] / end[k]; }
  const U = Array.from({length: q}, (_, i) => Float64Array.from({length: n}, (_, k) => bonds[k] * (features[(k + 1) * q + i] - features[k * q + i]))), held = right => solve(main, side, side, right);
  const W = U.map(held), dot = (a, b) => { let sum = 0; for (let k = 0; k < n; k++) sum += a[k] * b[k]; return sum; };
  const L = cholesky(Float64Array.from({length: q * q}, (_, k) => dot(U[k / q | 0], W[k % q]) + (k % (q + 1) === 0 ? q : 0)), q, 0);
  let v = Float64Array.from({length: n}, (_, k) => Math.sqrt(Math.min(end[k], end[k + 1])) * (1 + k / n)), value = 0;
  for (let round = 0; round < rounds; round++) {
    const u = held(v), c = U.map(one => dot(one, u));
    for (let i = 0; i < q; i++) { for (let p = 0; p < i; p++) c[i] -= L[i * q + p] * c[p]; c[i] /= L[i * q + i]; }
    for (let i = q - 1; i >= 0; i--) { for (let p = i + 1; p < q; p++) c[i] -= L[p * q + i] * c[p]; c[i] /= L[i * q + i]; }
    for (let i = 0; i < q; i++) for (let k = 0; k < n; k++) u[k] -= c[i] * W[i][k];
    value = dot(v, v) / dot(v, u);
    const size = Math.sqrt(dot(u, u));
    v = u.map(x => x / size);
  }
  return 2 * value;
}

// ---- N neurons: Euler steps with noise
function walk(unit, theta, lam, normal, steps, every = EVERY, lr = STEP) { // weights at the recorded times, and the energy of the network
  const {h, slope, y} = UNITS[unit], N = theta.length, q = X.length, labels = X.map(y), at = new Float64Array(N * q), heat = Math.sqrt(2 * lr * lam), path = [], energies = [];
  theta = Float64Array.from(theta);
  for (let t = 0; ; t++) {
    const r = labels.map(v => -v);
    let square = 0;
    for (let j = 0; j < N; j++) {
      square += theta[j] ** 2 / N;
      for (let i = 0; i < q; i++) r[i] += (at[j * q + i] = h(theta[j] * X[i])) / N;
    }
    if (t % every === 0) { path.push(theta.slice()); energies.push(half(r) + DECAY / 2 * square); }
    if (t === steps) return {path, energies};
    for (let j = 0; j < N; j++) {
      let force = 0;
      for (let i = 0; i < q; i++) force += r[i] * X[i] * slope(theta[j] * X[i], at[j * q + i]);
      theta[j] += -lr * (force / q + DECAY * theta[j]) + heat * normal();
    }
  }
}

// ---- the figure
const TIMES = Array.from({length: 81}, (_, k) => k / 4), STARTS = [[-2.5, "signal"], [4, "test"]], SPREAD = 0.5;
const LOW = 1e-6, BINS = Array.from({length: 31}, (_, k) => -6 + 0.4 * k);
function mount(box, given = {}) {
  const first = {lam: 0.1, unit: "tanh", N: 100, t: 5, ...given}, last = TIMES.length - 1;
  let playing = 0;

  function compute({lam, unit, N}) {
    const g = grid(unit, lam), paths = STARTS.map(([mean]) => flow(g, start(g, mean, SPREAD ** 2))), end = equilibrium(g, paths[0][last]), least = objective(g, end);
    const crowds = STARTS.map(([mean, colour], k) => {
      const {normal} = random(0, "neurons from " + mean), theta = Array.from({length: Math.round(N)}, () => mean + SPREAD * normal());
      const path = paths[k], gap = path.map(mu => objective(g, mu) - least), found = walk(unit, theta, lam, normal, END / STEP);
      return {colour, path, gap, weights: found.path, energies: found.energies};
    });
    const peak = Math.max(...[end, ...crowds.flatMap(c => c.path)].map(mu => mu.reduce((a, b) => Math.max(a, b)))) / g.cell;
    return {g, end, crowds, peak, rate: slowest(g, end), rest: guaranteed(g, end), promised: bound(g, crowds[0].path, crowds[0].gap),
      F: crowds[0].path.map(mu => energy(g, mu)), S: crowds[0].path.map(mu => lam * entropy(g, mu))};
  }

  function stop() { clearInterval(playing); playing = 0; box.querySelector("[name=play]").textContent = "Play"; }
  function play(view) {
    if (playing) { stop(); view.refresh(false); return; }
    if (view.values().t >= last) view.set("t", 0);
    box.querySelector("[name=play]").textContent = "Pause";
    playing = setInterval(() => {
      if (!box.isConnected || view.values().t + 1 >= last) stop();
      view.set("t", Math.min(view.values().t + 1, last));
      view.refresh(false);
    }, 60);
  }

  const view = live.figure(box, {
    label: "Live figure: neurons under gradient descent with noise, from two starts",
    controls: [
      {name: "lam", kind: "range", label: "temperature λ", min: 0.05, max: 1, step: 0.01, log: true, value: first.lam, show: v => short(+v.toPrecision(2))},
      {name: "unit", kind: "choice", label: "neuron h(θ, x)", choices: {tanh: "tanh θx", cos: "cos θx", tilted: "cos θx + 0.3 sin θx"}, value: first.unit},
      {name: "play", kind: "button", label: "Play", act: play},
      {name: "N", rest: true, kind: "range", label: "neurons N of each start", min: 10, max: 400, step: 0.02, log: true, value: first.N, show: N => String(Math.round(N))},
      {name: "t", late: true, kind: "range", label: "time t", min: 0, max: last, step: 1, value: Math.round(4 * first.t), show: k => short(TIMES[k])},
    ],
    panels: [
      {caption: 'Weights θ of N neurons (bars), and of infinitely many (lines), from <b style="color:var(--signal)">−2.5</b> and <b style="color:var(--test)">4</b>. Dashes: the minimiser. Grey: the potential of the first, not to scale.'},
      {caption: 'From −2.5: <b style="color:var(--signal)">energy F (thick)</b>, <b style="color:var(--noise)">λ E log μ (dashes)</b>, their sum, <b style="color:var(--ink)">the objective</b>. Thin: energy of the N neurons.'},
      {caption: 'The objective above its minimum from <b style="color:var(--signal)">−2.5</b> and <b style="color:var(--test)">4</b>. Dashes: slope of the linearised flow. <b style="color:var(--noise)">Dash-dotted: guaranteed from −2.5.</b>'},
    ],
    only: ["t"],
    compute,
    draw: (v, now, s) => { weights(v, now, s.t); energies(v, now, s.t); gaps(v, now, s); if (!playing) say(v, now, s); },
  });

  function weights(v, {g, end, crowds, peak}, t) {
    const high = 1.15 * peak, a = axes({x: [-6, 6], y: [0, high], xlabel: "weight θ", ylabel: "density"}), inside = k => Math.abs(g.theta[k]) <= 6;
    const line = mu => [...mu].map((p, k) => [g.theta[k], p / g.cell]).filter((_, k) => inside(k)), V = potential(g, crowds[0].path[t]);
    const floor = V.reduce((m, x) => Math.min(m, x)), hill = [...V].map((x, k) => [g.theta[k], (x - floor) * 0.3 * high]).filter(([, y], k) => inside(k) && y < high);
    const bars = ({weights: all, colour}) => {
      const counts = new Float64Array(BINS.length - 1), theta = all[t];
      theta.forEach(x => { const k = Math.floor((x + 6) / 0.4); if (k >= 0 && k < counts.length) counts[k] += 1 / (0.4 * theta.length); });
      return `<g opacity=".6">${a.bars(BINS, [...counts].map(c => Math.min(c, high)), {colour})}</g>`;
    };
    const middle = mu => short(+mu.reduce((sum, p, k) => sum + p * g.theta[k], 0).toPrecision(2));
    v.svg(0, a.frame() + crowds.map(bars).join("") + a.line(hill, {colour: "soft", width: 1.5}) + crowds.map(c => a.line(line(c.path[t]), {colour: c.colour, width: 2.5})).join("") +
      a.line(line(end), {width: 1.8, dash: "5 3"}),
      `At time ${short(TIMES[t])} the mean weights are ${crowds.map(c => middle(c.path[t])).join(" and ")}; at the minimum ${middle(end)}.`);
  }

  const over = list => TIMES.map((t, k) => [t, list[k]]);
  function energies(v, {F, S, crowds}, t) {
    const all = [...F, ...S, ...crowds[0].energies, ...F.map((f, k) => f + S[k])], a = axes({x: [0, END], y: [Math.min(...all), Math.max(...all)], xlabel: "time t"});
    v.svg(1, a.frame() + a.upright(TIMES[t], {dash: "2 3"}) + a.line(over(S), {colour: "noise", width: 2, dash: "6 3"}) + a.line(over(F), {colour: "signal", width: 3}) +
      a.line(over(crowds[0].energies), {colour: "network", width: 1}) + a.line(over(F.map((f, k) => f + S[k])), {width: 2}),
      `At time ${short(TIMES[t])}: energy ${short(F[t])}, of the N neurons ${short(crowds[0].energies[t])}; temperature times the mean of log μ ${short(S[t])}.`);
  }

  function gaps(v, {crowds, promised, rate}, {t}) {
    const a = axes({x: [0, END], y: [LOW, 10], logy: true, xlabel: "time t", ylabel: "above minimum"}), clip = list => over(list).filter(([, y]) => y > LOW).map(([x, y]) => [x, Math.min(y, 10)]);
    const [one, two] = crowds, dashed = TIMES.map(x => 2 * one.gap[24] * Math.exp(-rate * (x - 6)));
    v.svg(2, a.frame() + a.upright(TIMES[t], {dash: "2 3"}) + a.line(clip(promised), {colour: "noise", width: 2, dash: "8 3 2 3"}) + a.line(clip(two.gap), {colour: two.colour, width: 2.5}) +
      a.line(clip(one.gap), {colour: one.colour, width: 2.5}) + a.line(clip(dashed), {width: 1.5, dash: "5 3"}),
      `The objective is ${short(one.gap[t])} and ${short(two.gap[t])} above its minimum at time ${short(TIMES[t])}; ${short(promised[t])} is guaranteed from −2.5.`);
  }

  function say(v, {crowds, rate, rest, F, S}, {t}) {
    const two = x => short(+x.toPrecision(2)), [one, other] = crowds.map(c => c.path[t]), shared = one.reduce((sum, p, k) => sum + Math.min(p, other[k]), 0);
    v.say(`At t = ${short(TIMES[t])} F = ${two(F[t])} and λ E log μ = ${two(S[t])}, together ${two(Math.max(crowds[0].gap[t], 0))} above the minimum. Near it the objective falls at the rate ${two(rate)}; ` +
      `guaranteed there: ${two(rest.varies)} from e^(−B/λ), ${rest.bends > 0 ? two(rest.bends) : "nothing"} from the curvature. ` +
      `The two starts share ${Math.round(100 * shared)} % of their laws: ${shared > 0.95 ? "they are forgotten." : "they are not forgotten yet."}`);
  }
  return view;
}

live.langevin = {grid, start, flow, equilibrium, energy, entropy, objective, potential, guaranteed, bound, slowest, walk, X, mount};
})(globalThis.flbookLive);
