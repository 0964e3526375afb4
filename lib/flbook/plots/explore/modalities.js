/* Contrastive pre-training with one modality and with two: who grows faster, signal or noise, trained in the reader's browser.

   All weights stay in w(0) + span{mu, xi_1 .. xi_n}, so the state is the coefficients and the data are inner products. Names and
   formulas are those of flbook/lectures/foundation_models/contrastive (paired_training.py, signal_race.py, downstream.py). */
(live => {
"use strict";
const {random, bartlett, cholesky, short, axes, viridis} = live;
const relu = z => z > 0 ? z : 0;
function dot(a, u, b, v, size) { // four sums at a time do not wait for each other
  let s = 0, s1 = 0, s2 = 0, s3 = 0, r = 0;
  for (; r + 3 < size; r += 4) {
    s += a[u + r] * b[v + r]; s1 += a[u + r + 1] * b[v + r + 1]; s2 += a[u + r + 2] * b[v + r + 2]; s3 += a[u + r + 3] * b[v + r + 3];
  }
  for (; r < size; r++) s += a[u + r] * b[v + r];
  return s + s1 + (s2 + s3);
}
function mix(out, to, size, shares, rows, count, from) { // adds to a row `out` rows of the matrix `from`, by four, so that it is read and written less often
  let k = 0;
  for (; k + 3 < count; k += 4) {
    const x = shares[k], x1 = shares[k + 1], x2 = shares[k + 2], x3 = shares[k + 3], u = rows[k] * size, u1 = rows[k + 1] * size, u2 = rows[k + 2] * size, u3 = rows[k + 3] * size;
    for (let r = 0; r < size; r++) out[to + r] += x * from[u + r] + x1 * from[u1 + r] + (x2 * from[u2 + r] + x3 * from[u3 + r]);
  }
  for (; k < count; k++) for (let r = 0, u = rows[k] * size; r < size; r++) out[to + r] += shares[k] * from[u + r];
}

// ---- data: inner products of a signal of length 1, noise patches, initial weights
/* The noise patches of a modality, then its weights, then (`eps` above 0) the noise that augmentation adds: so one and two modalities share the first. */
function drawGram({n, m, d, start, eps = 0, seed = 0, role = "first"}) {
  const count = n + m + (eps ? n : 0), stream = random(seed, role), along = Float64Array.from({length: count}, stream.normal), L = bartlett(count, d - 1, stream);
  const sigma_0 = start / Math.sqrt(d), N = eps ? 2 * n : n, raw = new Float64Array(count * count);
  for (let i = 0; i < count; i++) for (let j = 0; j <= i; j++) {
    let s = along[i] * along[j];
    for (let p = 0; p <= j; p++) s += L[i][p] * L[j][p];
    raw[i * count + j] = raw[j * count + i] = s;
  }
  const patch = i => i < n ? [[i, 1]] : [[i - n, 1], [i + m, eps]], weight = r => [[n + r, sigma_0]]; // as sums of what was drawn
  const inner = (a, b) => { let s = 0; for (const [i, x] of a) for (const [j, y] of b) s += x * y * raw[i * count + j]; return s; };
  const on_mu = a => a.reduce((s, [i, x]) => s + x * along[i], 0);
  const list = (k, f) => Array.from({length: k}, (_, i) => f(i)), xi = list(N, patch), w = list(m, weight);
  const block = (rows, columns) => Float64Array.from(rows.flatMap(a => columns.map(b => inner(a, b))));
  return {N, mu_mu: 1, mu_xi: Float64Array.from(xi, on_mu), xi_xi: block(xi, xi), w_mu: Float64Array.from(w, on_mu), w_xi: block(w, xi), w_w: block(w, w)};
}
const withSignal = (g, mu) => ({...g, mu_mu: g.mu_mu * mu * mu, mu_xi: g.mu_xi.map(x => x * mu), w_mu: g.w_mu.map(x => x * mu)});

const labels = n => Float64Array.from({length: n}, (_, i) => 1 - 2 * (i % 2)); // +1, -1, +1, ...
/* For each sample M negatives, the next ones of the other label or the next ones of any label: every sample is a negative equally often. */
const negativesOf = (n, M, from) => Array.from({length: n}, (_, i) => Int32Array.from({length: M}, (_, k) => (i + (from === "other" ? 2 * k + 1 : k + 1)) % n));

// ---- training of one encoder on two views of a modality (one Gram), or of two encoders on a modality each (two)
class Training {
  constructor(grams, y, negatives, temperature = 1) {
    const n = y.length, m = grams[0].w_mu.length, V = grams.length;
    const fill = size => grams.map(g => new Float64Array(size(g)));
    Object.assign(this, {grams, y, negatives, n, m, V, temperature, c_mu: fill(() => m), c_xi: fill(() => m * n), on_mu: fill(() => m), on_xi: fill(g => m * g.N), h: fill(g => g.N * m),
      slopes: fill(() => n * m), shares: new Float64Array(n), rows: new Int32Array(n)});
    this.look();
  }
  look() { // what each neuron sees, and the features of the noise patches (h, a row for each patch)
    const {n, m, shares, rows} = this;
    this.grams.forEach((g, v) => {
      const {N} = g, c_mu = this.c_mu[v], c_xi = this.c_xi[v], on_mu = this.on_mu[v], on_xi = this.on_xi[v], h = this.h[v];
      for (let r = 0; r < m; r++) {
        const at = r * N, c = c_mu[r];
        let moved = 0;
        for (let p = 0; p < n; p++) if (c_xi[r * n + p] !== 0) { shares[moved] = c_xi[r * n + p]; rows[moved++] = p; }
        on_mu[r] = g.w_mu[r] + c * g.mu_mu + dot(c_xi, r * n, g.mu_xi, 0, n);
        for (let i = 0; i < N; i++) on_xi[at + i] = g.w_xi[at + i] + c * g.mu_xi[i];
        mix(on_xi, at, N, shares, rows, moved, g.xi_xi);
        for (let i = 0; i < N; i++) h[i * m + r] = relu(on_xi[at + i]);
      }
    });
  }
  /* Anchors of encoder a at their noise patches, partners of encoder b from patch `shift` on, negatives from patch 0 of encoder b. Adds the
     gradient's coefficients to `slopes` and `on_signal`, and returns the loss. Stop-gradient: only the anchors move. */
  oneWay(a, b, shift, slopes, on_signal) {
    const {n, m, y, temperature, shares, negatives} = this, ha = this.h[a], hb = this.h[b], za = this.on_mu[a], zb = this.on_mu[b];
    const same = [0, 0], crossed = [0, 0], pull = [0, 0], push = [0, 0, 0, 0]; // by label of the anchor: 0 for +1, 1 for -1
    for (let r = 0; r < m; r++) for (const l of [0, 1]) {
      const s = l ? -1 : 1, x = relu(s * za[r]);
      same[l] += x * relu(s * zb[r]); crossed[l] += x * relu(-s * zb[r]);
    }
    let loss = 0;
    for (let i = 0; i < n; i++) {
      const l = y[i] > 0 ? 0 : 1, list = negatives[i], M = list.length, mine = same[l], theirs = crossed[l], from = (shift + i) * m;
      const partner = (dot(ha, i * m, hb, from, m) + mine) / temperature;
      let top = partner, all = 0, missing = 0, toMine = 0;
      for (let k = 0; k < M; k++) {
        shares[k] = (dot(ha, i * m, hb, list[k] * m, m) + (y[list[k]] === y[i] ? mine : theirs)) / temperature;
        if (shares[k] > top) top = shares[k];
      }
      const right = Math.exp(partner - top);
      for (let k = 0; k < M; k++) all += shares[k] = Math.exp(shares[k] - top);
      all += right;
      for (let k = 0; k < M; k++) {
        missing += shares[k] /= all * temperature;
        if (y[list[k]] === y[i]) toMine += shares[k];
      }
      loss -= Math.log(right / all);
      pull[l] += missing; push[3 * l] += toMine; push[1 + l] += missing - toMine;
      for (let r = 0; r < m; r++) slopes[i * m + r] -= missing * hb[from + r];
      mix(slopes, i * m, m, shares, list, M, hb);
    }
    for (let r = 0; r < m; r++) {
      const plus = relu(zb[r]), minus = relu(-zb[r]);
      if (za[r] > 0) on_signal[r] += push[0] * plus + push[1] * minus - pull[0] * plus;
      if (za[r] < 0) on_signal[r] -= push[2] * plus + push[3] * minus - pull[1] * minus;
    }
    return loss / n;
  }
  sweep(use) { // both directions if there are two modalities; use(v, slopes, on_signal) takes the gradient of encoder v, times n
    let loss = 0;
    const found = this.grams.map((_, v) => {
      const slopes = this.slopes[v].fill(0), on_signal = new Float64Array(this.m);
      loss += this.V === 1 ? this.oneWay(0, 0, this.n, slopes, on_signal) : this.oneWay(v, 1 - v, 0, slopes, on_signal);
      return [slopes, on_signal];
    });
    if (use) found.forEach(([slopes, on_signal], v) => use(v, slopes, on_signal));
    return loss;
  }
  get loss() { return this.sweep(); }
  step(lr) { // gradient descent; returns the loss before it
    const {n, m} = this, loss = this.sweep((v, slopes, on_signal) => {
      const c_mu = this.c_mu[v], c_xi = this.c_xi[v], h = this.h[v];
      for (let r = 0; r < m; r++) {
        c_mu[r] -= lr / n * on_signal[r];
        for (let i = 0; i < n; i++) if (h[i * m + r] > 0) c_xi[r * n + i] -= lr / n * slopes[i * m + r];
      }
    });
    this.look();
    return loss;
  }
  largest() { // of the first encoder: the largest |gamma|, the largest rho
    const {n, m, grams: [g], c_mu: [c_mu], c_xi: [c_xi]} = this;
    let gamma = 0, rho = 0;
    for (let r = 0; r < m; r++) {
      gamma = Math.max(gamma, Math.abs(c_mu[r]) * g.mu_mu);
      for (let i = 0; i < n; i++) rho = Math.max(rho, c_xi[r * n + i] * g.xi_xi[i * (g.N + 1)]);
    }
    return {gamma, rho};
  }
  weightGram() { // inner products of the first encoder's neurons
    const {n, m, grams: [g], c_mu: [c_mu], c_xi: [c_xi], on_mu: [on_mu], on_xi: [on_xi]} = this, out = g.w_w.slice();
    for (let r = 0; r < m; r++) for (let l = 0; l < m; l++) { // <w_r, w_l> is half of <move_r, w_l(0) + w_l> and of the same with r and l exchanged, beside w_w
      let half = c_mu[r] * (g.w_mu[l] + on_mu[l]) / 2;
      for (let i = 0; i < n; i++) half += c_xi[r * n + i] * (g.w_xi[l * g.N + i] + on_xi[l * g.N + i]) / 2;
      out[r * m + l] += half; out[l * m + r] += half;
    }
    return out;
  }
  /* Accuracy of a logistic regression on the first encoder's features, on fresh samples of signal strength nu; standard: rows of m normal
     numbers. stretch: as if the signal were so many times as long, which training with two modalities cannot tell. */
  accuracy(nu, standard, stretch = 1, regression = this.regression(stretch)) {
    const {m, on_mu: [on_mu], grams: [g]} = this, L = cholesky(this.weightGram(), m), strength = nu / Math.sqrt(g.mu_mu), z = new Float64Array(m);
    let right = 0;
    for (let at = 0; at + m <= standard.length; at += m) {
      let noise = regression[m], plus = 0, minus = 0;
      for (let r = 0; r < m; r++) {
        z[r] = 0;
        for (let p = 0; p <= r; p++) z[r] += L[r * m + p] * standard[at + p];
        noise += regression[r] * relu(z[r]); plus += regression[r] * relu(strength * on_mu[r]); minus += regression[r] * relu(-strength * on_mu[r]);
      }
      right += (noise + plus > 0) + (noise + minus < 0);
    }
    return right / 2 / Math.floor(standard.length / m);
  }
  regression(stretch = 1) {
    const {n, m, y, on_mu: [on_mu], h: [h]} = this;
    return logisticRegression(Array.from({length: n}, (_, i) => Float64Array.from({length: m}, (_, r) => relu(stretch * y[i] * on_mu[r]) + h[i * m + r])), y);
  }
}

function logisticRegression(rows, y, ridge = 1, steps = 12) { // weights, then an intercept; Newton's method
  const k = rows[0].length + 1, w = new Float64Array(k), shrink = i => ridge * (i < k - 1 ? 1 : 1e-9), x = rows.map(row => Float64Array.of(...row, 1));
  for (let t = 0; t < steps; t++) {
    const A = new Float64Array(k * k), b = Float64Array.from(w, (s, i) => -shrink(i) * s);
    for (let i = 0; i < k; i++) A[i * (k + 1)] = shrink(i);
    x.forEach((row, s) => {
      let f = 0;
      for (let i = 0; i < k; i++) f += row[i] * w[i];
      const slope = 1 / (1 + Math.exp(y[s] * f)), curve = slope * (1 - slope);
      for (let i = 0; i < k; i++) {
        b[i] += y[s] * slope * row[i];
        if (row[i] !== 0) for (let j = 0; j <= i; j++) A[i * k + j] += curve * row[i] * row[j];
      }
    });
    const L = cholesky(A, k, 0);
    for (let i = 0; i < k; i++) { for (let j = 0; j < i; j++) b[i] -= L[i * k + j] * b[j]; b[i] /= L[i * k + i]; }
    for (let i = k - 1; i >= 0; i--) { for (let j = i + 1; j < k; j++) b[i] -= L[j * k + i] * b[j]; b[i] /= L[i * k + i]; }
    for (let i = 0; i < k; i++) w[i] += b[i];
  }
  return w;
}

// ---- theory: what a step adds, relatively, while all similarities are small; `other`: how many of the M negatives have the other label
const signalRate = (product, lr, M, other = M) => lr / 2 * other / (M + 1) * product;
const noiseRate = (square, n, lr, M) => lr / n * M / (M + 1) * square;
const border = (M, other = M) => 2 * M / other; // of n SNR SNR~, where the two rates are equal
/* The largest response to the first signal, and the largest to a noise patch, in the direction that grows: of the neuron with one
   modality, of both modalities' neurons with two (a neuron that one of them does not excite does not grow). */
function growing({V, m, n, grams: [g, second], on_mu, on_xi}) {
  let signal = 0, noise = 0;
  const size = Math.sqrt(g.mu_mu), other = V === 2 ? Math.sqrt(second.mu_mu) : 1;
  for (let r = 0; r < m; r++) {
    signal = Math.max(signal, Math.abs(V === 2 ? (on_mu[0][r] + size / other * on_mu[1][r]) / 2 : on_mu[0][r]));
    for (let i = 0; i < n; i++) {
      const u = on_xi[0][r * g.N + i], v = V === 2 ? on_xi[1][r * second.N + i] : u;
      if (u > 0 && v > 0) noise = Math.max(noise, (u + v) / 2);
    }
  }
  return {signal, noise};
}

// ---- one experiment: both trainings from the same first modality and the same start
const EPS = 0.1, FASTEST = 0.6;
/* At the lecture's noise rate; less where the signal would grow by more than FASTEST a step. From n/2 negatives, so that fewer are slower. */
const stepSize = (n, d, pair, rate) => Math.min(rate, 2 * FASTEST / pair) / noiseRate(d, n, 1, n / 2);
function drawAll({n, m, d, start, seed}) {
  const first = drawGram({n, m, d, start, eps: EPS, seed}), second = drawGram({n, m, d, start, seed, role: "second"}), {N} = first;
  const plain = {...first, N: n, mu_xi: first.mu_xi.slice(0, n), xi_xi: first.xi_xi.filter((_, at) => at % N < n && at < n * N), w_xi: first.w_xi.filter((_, at) => at % N < n)};
  return {first, plain, second};
}
function training(drawn, V, mu, second, y, negatives) {
  return new Training(V === 1 ? [withSignal(drawn.first, mu)] : [withSignal(drawn.plain, mu), withSignal(drawn.second, second)], y, negatives);
}
function follow(net, lr, steps) { // the largest coefficients of the first encoder after each step
  const rows = [];
  for (let t = 0; t <= steps; t++) {
    rows.push({step: t, ...net.largest()});
    rows[t].loss = t < steps ? net.step(lr) : net.loss;
  }
  return rows;
}

/* Accuracies of the first modality at these n SNR^2, all with the second so strong that the product is `pair`: one training serves all. */
function diagonal(drawn, d, pair, strengths, y, negatives, {rate, steps, nu}) {
  const n = y.length, mu = Math.sqrt(pair * d / n), net = training(drawn, 2, mu, mu, y, negatives), lr = stepSize(n, d, pair, rate);
  for (let t = 0; t < steps; t++) net.step(lr);
  return strengths.map(strength => net.accuracy(nu, drawn.points, Math.sqrt(strength / pair)));
}
/* The factor by which a step multiplies what is learned, measured over the second half of the time in which the loss has hardly moved,
   as that of the gains: what was there at the start does not enter. Not a number if the time is too short to leave the start behind. */
function growth(rows, name) {
  const late = rows.findIndex(q => q.loss < 0.98 * rows[0].loss), end = (late < 0 ? rows.length : late) - 2, from = Math.floor(end / 2), gain = t => rows[t + 1][name] - rows[t][name];
  return end - from >= 8 ? (gain(end) / gain(from)) ** (1 / (end - from)) : NaN;
}

// ---- the figure
const N_SNR2 = [0.25, 4], RATIO = [0.5, 8], CELLS = 12, NU = 2, CEILING = 0.9772, POINTS = 256, LEARNED = 0.9, FAILED = 0.65; // CEILING: Phi(NU), neurons along the signal alone
function mount(box, given = {}) {
  const first = {n_snr2: 1.25, ratio: 3, negatives: 20, labels: "other", d: 2000, seed: 0, ...given}, n = 40, m = 20, start = 1e-3, rate = 0.2, steps = 150, y = labels(n);
  let seed = first.seed, drawn, drawnKey = "", cells = new Map(), mapKey = "", filling = 0;

  function compute(s) {
    const d = +s.d.toPrecision(2), M = s.negatives, other = s.labels === "other" ? M : M / 2, key = [d, seed].join(), all = [key, M, s.labels].join();
    if (key !== drawnKey) {
      drawn = drawAll({n, m, d, start, seed}); drawnKey = key;
      drawn.points = Float64Array.from({length: POINTS * m}, random(seed, "test").normal);
    }
    if (all !== mapKey) { cells = new Map(); mapKey = all; }
    const mu = Math.sqrt(+s.n_snr2.toPrecision(3) * d / n), second = +s.ratio.toPrecision(2) * mu, negatives = negativesOf(n, M, s.labels);
    const pair = n * mu * second / d, lr = stepSize(n, d, pair, rate);
    const runs = [1, 2].map(V => {
      const net = training(drawn, V, mu, second, y, negatives), big = growing(net), rows = follow(net, lr, steps);
      const rates = {gamma: signalRate(V === 1 ? mu * mu : mu * second, lr, M, other), rho: noiseRate(d, n, lr, M)};
      return {V, rows, big: {gamma: big.signal, rho: big.noise}, rates, accuracy: net.accuracy(NU, drawn.points), last: rows[steps]};
    });
    return {runs, d, M, negatives, pair, border: border(M, other), snr: mu / Math.sqrt(d)};
  }

  const view = live.figure(box, {
    label: "Live figure: contrastive training with one modality and with two",
    controls: [
      {name: "n_snr2", kind: "range", label: "signal n·SNR²", min: N_SNR2[0], max: N_SNR2[1], step: 0.005017, log: true, value: first.n_snr2,
        show: (v, {snr}) => `${short(v)} (SNR ${two(snr)})`},
      {name: "ratio", kind: "range", label: "ratio of signals C", min: RATIO[0], max: RATIO[1], step: 0.02006, log: true, value: first.ratio, show: two},
      {name: "negatives", kind: "range", label: "negatives n₋", min: 2, max: n / 2, step: 2, value: first.negatives, show: String},
      {name: "d", rest: true, kind: "range", label: "dimension d", min: 500, max: 1e5, step: 0.05, log: true, value: first.d, show: two},
      {name: "labels", rest: true, kind: "choice", label: "negatives are of", value: first.labels, choices: {other: "the other label", any: "any label"}},
      {name: "again", kind: "button", label: "New data", act: v => { seed++; v.refresh(); }},
    ],
    panels: [
      {caption: 'Largest coefficient of the <b style="color:var(--signal)">signal, γ (thick)</b>, and of the <b style="color:var(--noise)">noise, ρ (thin)</b>. Dashed: theory, for orthogonal noise; here noise leaks a little into a weak signal.'},
      {caption: "The same for the first of two encoders. In the panels: the factor of a step, measured and in theory. Growth ends when one of the two fits the task."},
      {caption: "Accuracy downstream with two modalities, dark (½) to bright (1); 40 pairs, 20 neurons, one draw. Dashed: theory’s border; dotted: that of one modality. Ring: here; click to move it."},
    ],
    compute,
    draw: (v, now) => { now.runs.forEach((run, i) => race(v, run, i)); map(v, now); say(v, now); fill(v, now); },
  });
  view.panels[2].style.cursor = "crosshair";
  view.panels[2].onclick = e => {
    const box = view.panels[2].getBoundingClientRect(), {W, H, LEFT, TOP, WIDE, HIGH} = live.field, at = (t, [lo, hi]) => lo * (hi / lo) ** Math.min(Math.max(t, 0), 1);
    view.set("n_snr2", at((W * (e.clientX - box.left) / box.width - LEFT) / WIDE, N_SNR2));
    view.set("ratio", at(1 - (H * (e.clientY - box.top) / box.height - TOP) / HIGH, RATIO));
    view.refresh();
  };

  function race(v, {V, rows, big, rates, last}, i) {
    const LOW = 1e-5, HIGH = 10, title = V === 1 ? "one modality" : "two modalities";
    const a = axes({x: [0, steps], y: [LOW, 1e4], logy: true, xlabel: "training step", yticks: [[1e-4, "10⁻⁴"], [1e-2, "10⁻²"], [1, "1"]]}); // above HIGH there is room for words
    const within = points => points.filter(([, x]) => x >= LOW && x <= HIGH);
    const theory = name => a.line(within(rows.map(({step}) => [step, big[name] * ((1 + rates[name]) ** step - 1)])), {width: 1.6, dash: "5 4"});
    const curve = (name, how) => a.line(within(rows.map(q => [q.step, q[name]])), how);
    const measured = name => { const x = growth(rows, name); return Number.isNaN(x) ? "" : ` × ${x.toFixed(2)}`; };
    const words = (top, name, colour, label) => a.words(live.field.LEFT + 6, top, `${label}${measured(name)} (theory × ${(1 + rates[name]).toFixed(2)})`, `style="fill:var(--${colour})"`);
    v.svg(i, a.frame() + curve("rho", {colour: "noise", width: 2}) + curve("gamma", {colour: "signal", width: 4}) + theory("rho") + theory("gamma") +
      a.words(live.field.LEFT + 6, 18, title, 'font-weight="700"') +
      words(35, "gamma", "signal", "signal") + words(51, "rho", "noise", "noise"), `With ${title}, after ${steps} steps: signal coefficient ${two(last.gamma)}, noise coefficient ${two(last.rho)}.`);
  }

  const centre = (i, [lo, hi]) => lo * (hi / lo) ** ((i + 0.5) / CELLS);
  function map(v, now) {
    const quarter = (lo, hi) => [0.25, 0.5, 1, 2, 4, 8].filter(x => x >= lo && x <= hi).map(x => [x, x === 0.25 ? "¼" : x === 0.5 ? "½" : String(x)]);
    const {LEFT, TOP, WIDE, HIGH} = live.field, a = axes({x: N_SNR2, y: RATIO, logx: true, logy: true, xlabel: "n·SNR²", xticks: quarter(...N_SNR2), yticks: quarter(1, RATIO[1])});
    const dx = WIDE / CELLS, dy = HIGH / CELLS, s = v.values();
    const tiles = Array.from({length: CELLS * CELLS}, (_, at) => {
      const i = at % CELLS, j = at / CELLS | 0, right = cells.get(at), colour = right === undefined ? "var(--edge)" : viridis(2 * right - 1);
      return `<rect x="${(LEFT + i * dx).toFixed(1)}" y="${(TOP + HIGH - (j + 1) * dy).toFixed(1)}" width="${(dx + 0.4).toFixed(1)}" height="${(dy + 0.4).toFixed(1)}" ` +
        `shape-rendering="crispEdges" fill="${colour}"/>`;
    });
    const both = path => [["#fff", 4], ["#000", 1.8]].map(([colour, width]) => path(`fill="none" stroke="${colour}" stroke-width="${width}"`, width < 4)).join("");
    const line = (x, y, x2, y2, dash) => both((how, thin) => `<path d="M${x.toFixed(1)} ${y.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}" ${how}${thin ? ` stroke-dasharray="${dash}"` : ""}/>`);
    const b = now.border, lo = Math.max(N_SNR2[0], b / RATIO[1]), hi = Math.min(N_SNR2[1], b / RATIO[0]); // where the border is in the picture
    v.svg(2, a.frame() + tiles.join("") + line(a.px(lo), a.py(b / lo), a.px(hi), a.py(b / hi), "7 5") + line(a.px(b), TOP, a.px(b), TOP + HIGH, "1.5 3.5") +
      both(how => `<circle cx="${a.px(s.n_snr2).toFixed(1)}" cy="${a.py(s.ratio).toFixed(1)}" r="6" ${how}/>`) + a.words(3, TOP + HIGH / 2 + 4, "C"),
      `Map of the accuracy with two modalities. Theory’s border is at C·n·SNR² = ${short(b)}; here it is ${short(now.pair)}.`);
  }
  function fill(v, now) { // one training serves a diagonal: with two modalities only the product of the signals counts
    const token = ++filling, todo = Array.from({length: 2 * CELLS - 1}, (_, k) => k).sort((k, l) => Math.abs(k - CELLS + 1) - Math.abs(l - CELLS + 1));
    const slice = () => {
      if (token !== filling || !box.isConnected) return;
      const k = todo.find(k => !cells.has(cellOf(k, Math.min(k, CELLS - 1))));
      box.dataset.cells = cells.size;
      if (k === undefined) return;
      const pair = centre(0, N_SNR2) * centre(0, RATIO) * 2 ** (k / 3);
      const across = Array.from({length: CELLS}, (_, i) => i).filter(i => k - i >= 0 && k - i < CELLS);
      diagonal(drawn, now.d, pair, across.map(i => centre(i, N_SNR2)), y, now.negatives, {rate, steps, nu: NU}).forEach((right, at) => cells.set(cellOf(k, across[at]), right));
      map(v, now);
      setTimeout(slice, 0);
    };
    setTimeout(slice, 30);
  }
  const cellOf = (k, i) => (k - i) * CELLS + i;

  function say(v, {runs, pair, border}) {
    const did = ({accuracy}) => accuracy > LEARNED ? "learned the signal" : accuracy < FAILED ? "memorised noise" : "learned some of the signal";
    const fact = run => `${did(run)} (γ = ${two(run.last.gamma)}, ρ = ${two(run.last.rho)}; accuracy downstream ${run.accuracy.toFixed(2)})`;
    v.say(`One modality ${fact(runs[0])}; two modalities ${fact(runs[1])}. With two, the signal grows faster than the noise if C·n·SNR² > ${short(border)}; it is ${short(pair)}. ` +
      (border > 2 ? "Samples of one label differ in their noise only, so it must be memorised, too." : `Neurons along the signal alone would have accuracy ${CEILING.toFixed(2)}.`));
  }
  return view;
}
const two = x => short(+x.toPrecision(2));

live.modalities = {Training, drawGram, drawAll, training, follow, labels, negativesOf, logisticRegression, signalRate, noiseRate, border, growing, stepSize, diagonal, growth, mount};
})(globalThis.flbookLive);
