/* Benign or harmful: a two-layer network on signal-noise data with wrong labels, trained in the reader's browser.

   Weights stay in w(0) + span{mu, xi_1 .. xi_n}, so the state is the coefficients and the data are inner products: the
   dimension d enters through them alone. Names and formulas are those of flbook/dynamics/gram.py, where the derivation stands. */
(live => {
"use strict";
const {random, bartlett, cholesky, short, errorOf, axes, viridis} = live;

// ---- data: inner products of signal, noise and initial filters; components along mu apart, the rest by Bartlett
function drawGram({n, m, d, sigma_0 = 1e-8, seed = 0}) {
  const k = 2 * m, N = n + k, stream = random(seed, "gram"), along = Float64Array.from({length: N}, stream.normal), L = bartlett(N, d - 1, stream);
  const inner = (i, j) => {
    let s = along[i] * along[j];
    for (let p = Math.min(i, j); p >= 0; p--) s += L[i][p] * L[j][p];
    return s;
  };
  const block = (rows, columns, from, to, scale) => Float64Array.from({length: rows * columns}, (_, at) => scale * inner(from + (at / columns | 0), to + at % columns));
  return {n, k, mu_mu: 1, mu_xi: along.slice(0, n), xi_xi: block(n, n, 0, 0, 1), w_mu: along.slice(n).map(x => sigma_0 * x),
    w_xi: block(k, n, n, 0, sigma_0), w_w: block(k, k, n, n, sigma_0 ** 2)};
}
const withSignal = (g, mu) => ({...g, mu_mu: g.mu_mu * mu * mu, mu_xi: g.mu_xi.map(x => x * mu), w_mu: g.w_mu.map(x => x * mu)});

function labels(n, p) { // balanced, exactly round(pn) flipped
  const y = Float64Array.from({length: n}, (_, i) => 1 - 2 * (i % 2));
  return {y, observed: y.map((s, i) => i < Math.round(p * n) ? -s : s)};
}

const relu = z => z > 0 ? z : 0, gate = z => z > 0 ? 1 : 0;

// ---- the network in coefficients; `model`: "network", "linear" (sigma(z) = z) or "lazy" (gates as they were at the start)
class Network {
  constructor(gram, {y, observed}, {scale = 2 / gram.k, model = "network"} = {}) {
    const {n, k} = gram;
    Object.assign(this, {g: gram, n, k, y, observed, scale, model, c_mu: new Float64Array(k), c_xi: new Float64Array(k * n),
      on_mu: new Float64Array(k), on_xi: new Float64Array(k * n), f: new Float64Array(n)});
    this.look();
    this.first = {on_mu: this.on_mu.slice(), on_xi: this.on_xi.slice()};
  }
  sign(r) { return r < this.k / 2 ? 1 : -1; }
  respond(z, z_0) { return this.model === "linear" ? z : this.model === "lazy" ? relu(z_0) + gate(z_0) * (z - z_0) : relu(z); }
  slope(z, z_0) { return this.model === "linear" ? 1 : gate(this.model === "lazy" ? z_0 : z); }
  look() { // pre-activations and outputs at the present coefficients
    const {g, n, k, c_mu, c_xi, on_mu, on_xi, f, y} = this, first = this.first || this;
    for (let r = 0; r < k; r++) {
      const at = r * n;
      on_mu[r] = g.w_mu[r] + c_mu[r] * g.mu_mu;
      for (let i = 0; i < n; i++) on_mu[r] += c_xi[at + i] * g.mu_xi[i];
      for (let i = 0; i < n; i++) on_xi[at + i] = g.w_xi[at + i] + c_mu[r] * g.mu_xi[i];
      for (let p = 0; p < n; p++) {
        const c = c_xi[at + p], row = p * n;
        if (c !== 0) for (let i = 0; i < n; i++) on_xi[at + i] += c * g.xi_xi[row + i];
      }
    }
    let plus = 0, minus = 0;
    f.fill(0);
    for (let r = 0; r < k; r++) {
      const at = r * n, a = this.scale * this.sign(r);
      plus += a * this.respond(on_mu[r], first.on_mu[r]);
      minus += a * this.respond(-on_mu[r], -first.on_mu[r]);
      for (let i = 0; i < n; i++) f[i] += a * this.respond(on_xi[at + i], first.on_xi[at + i]);
    }
    for (let i = 0; i < n; i++) f[i] += y[i] > 0 ? plus : minus;
    this.on_signal = [plus, minus];
  }
  step(lr) { // gradient descent on the logistic loss
    const {n, k, y, observed, f, on_mu, on_xi, first, c_mu, c_xi} = this;
    const derivative = f.map((out, i) => -observed[i] / (1 + Math.exp(observed[i] * out)) / n);
    let up = 0, down = 0;
    for (let i = 0; i < n; i++) if (y[i] > 0) up += derivative[i]; else down += derivative[i];
    for (let r = 0; r < k; r++) {
      const at = r * n, a = lr * this.scale * this.sign(r);
      c_mu[r] -= a * (this.slope(on_mu[r], first.on_mu[r]) * up - this.slope(-on_mu[r], -first.on_mu[r]) * down);
      for (let i = 0; i < n; i++) c_xi[at + i] -= a * this.slope(on_xi[at + i], first.on_xi[at + i]) * derivative[i];
    }
    this.look();
  }
  get gamma() { return Array.from(this.c_mu, (c, r) => this.sign(r) * this.g.mu_mu * c); }
  get rho() { return Array.from(this.c_xi, (c, at) => this.g.xi_xi[(at % this.n) * (this.n + 1)] * c); }
  get trainError() { return errorOf(Array.from(this.f, (f, i) => f * this.observed[i])); }
  weightGram() { // [<w_k, w_l> of the trained filters, <w_k, w_l(0)> with the initial ones]
    const {g, n, k, c_mu, c_xi} = this, mean = new Float64Array(k * n), m_mu = new Float64Array(k), both = new Float64Array(k * k), cross = new Float64Array(k * k);
    for (let l = 0; l < k; l++) {
      m_mu[l] = g.w_mu[l] + g.mu_mu * c_mu[l] / 2;
      for (let i = 0; i < n; i++) {
        m_mu[l] += c_xi[l * n + i] * g.mu_xi[i];
        let s = 0;
        for (let p = 0; p < n; p++) s += c_xi[l * n + p] * g.xi_xi[p * n + i];
        mean[l * n + i] = g.w_xi[l * n + i] + s / 2;
      }
    }
    for (let r = 0; r < k; r++) for (let l = 0; l < k; l++) {
      let half = c_mu[r] * m_mu[l], old = g.w_w[r * k + l] + c_mu[r] * g.w_mu[l];
      for (let i = 0; i < n; i++) {
        half += c_xi[r * n + i] * mean[l * n + i];
        old += c_xi[r * n + i] * g.w_xi[l * n + i];
      }
      both[r * k + l] += half; both[l * k + r] += half;
      cross[r * k + l] = old;
    }
    return [both.map((s, at) => g.w_w[at] + s), cross];
  }
  fresh(standard, [now, cross] = this.weightGram()) { // true label times output, on fresh samples of both labels; standard: rows of normal numbers
    const {k, scale, on_signal} = this, lazy = this.model === "lazy", size = lazy ? 2 * k : k, z = new Float64Array(size), out = [];
    const L = cholesky(lazy ? this.sideBySide(now, cross) : now, size);
    for (let at = 0; at + size <= standard.length; at += size) {
      for (let r = 0; r < size; r++) {
        z[r] = 0;
        for (let p = 0; p <= r; p++) z[r] += L[r * size + p] * standard[at + p];
      }
      let s = 0;
      for (let r = 0; r < k; r++) s += scale * this.sign(r) * this.respond(z[r], z[k + r]);
      out.push(on_signal[0] + s, -on_signal[1] - s);
    }
    return out;
  }
  sideBySide(now, cross) { // Gram matrix of trained and initial filters together
    const {k, g} = this, K = 2 * k, joint = new Float64Array(K * K);
    for (let r = 0; r < k; r++) for (let l = 0; l < k; l++) {
      joint[r * K + l] = now[r * k + l];
      joint[r * K + k + l] = joint[(k + l) * K + r] = cross[r * k + l];
      joint[(k + r) * K + k + l] = g.w_w[r * k + l];
    }
    return joint;
  }
  length([now] = this.weightGram()) { // root mean square of |w|, what fresh noise of level 1 meets
    let s = 0;
    for (let r = 0; r < this.k; r++) s += now[r * this.k + r];
    return Math.sqrt(s / this.k);
  }
}

const phase = (n, mu, d) => n * mu ** 4 / d; // r, at noise level 1
const stepSize = (n, m, d, mu) => n * m / (d + n * mu * mu); // memorises in O(1) steps, and no signal overshoots
const logSteps = (steps, points = 40) => [...new Set([0, steps, ...Array.from({length: points}, (_, i) => Math.round(steps ** (i / (points - 1))))])].sort((a, b) => a - b);

function train({n, m, d, mu, p, seed = 0, model = "network", steps = 600, points = 384, at = [steps]}) {
  const net = new Network(withSignal(drawGram({n, m, d, seed}), mu), labels(n, p), {scale: 1 / m, model});
  const stream = random(seed, "test"), size = model === "lazy" ? 4 * m : 2 * m, standard = Float64Array.from({length: points * size}, stream.normal), rows = [];
  for (let t = 0; t <= steps; t++) {
    if (at.includes(t)) {
      const weights = net.weightGram(), fresh = net.fresh(standard, weights);
      rows.push({step: t, gamma: Math.max(...net.gamma), rho: Math.max(...net.rho), length: net.length(weights), trainError: net.trainError,
        train: Array.from(net.f, (f, i) => f * net.observed[i]), fresh, testError: errorOf(fresh)});
    }
    if (t < steps) net.step(stepSize(n, m, d, mu));
  }
  return {rows, flipped: Array.from(net.y, (y, i) => y !== net.observed[i])};
}

// ---- the figure
const D = [100, 1e6], M = [1, 100], CELLS = 20, FIT = 0.02, HARM = 0.2;
const [LEFT, TOP, WIDE, HIGH] = ["LEFT", "TOP", "WIDE", "HIGH"].map(name => 2 * live.field[name]); // the map's cells lie where the other panels' axes do; a canvas has two pixels a unit
function mount(box, given = {}) {
  const start = {n: 20, d: 2000, mu: 3, p: 0.1, m: 10, seed: 0, model: "network", steps: 600, ...given}, at = logSteps(start.steps);
  let seed = start.seed, cells = new Map(), filling = 0, drawn = "";
  const room = n => n + 2 * start.m + 2;
  const setting = s => ({...s, n: Math.round(s.n), d: Math.max(room(s.n), Math.round(s.d)), m: start.m, seed, steps: start.steps});
  const cell = (lo, hi, i) => lo * (hi / lo) ** ((i + 0.5) / CELLS);

  const view = live.figure(box, {
    label: "Live figure: train a network on labels of which some are wrong",
    controls: [
      {name: "n", rest: true, kind: "range", label: "samples n", min: 10, max: 100, step: 2, value: start.n},
      {name: "d", kind: "range", label: "dimension d", min: D[0], max: D[1], step: 0.05, log: true, value: start.d},
      {name: "mu", kind: "range", label: "signal |μ|", min: M[0], max: M[1], step: 0.02, log: true, value: start.mu},
      {name: "p", kind: "range", label: "wrong labels", min: 0, max: 0.3, step: 0.05, value: start.p, show: p => `${Math.round(100 * p)} %`},
      {name: "model", rest: true, kind: "choice", label: "model", value: start.model, choices: {network: "ReLU network", linear: "linear", lazy: "lazy (fixed gates)"}},
      {name: "again", rest: true, kind: "button", label: "New data", act: v => { seed++; v.refresh(); }},
      {name: "fill", rest: true, kind: "button", label: "Fill the map", act: () => filling ? stop() : fill()},
      {name: "t", kind: "range", late: true, label: "after training step", min: 0, max: at.length - 1, step: 1, value: at.length - 1, show: i => String(at[i])},
    ],
    panels: [
      {canvas: true, caption: "Test error, from dark (0) to bright (½). Grey: not trained yet. Dashed: n|μ|⁴ = 3d. Click, or use the sliders."},
      {caption: '<b style="color:var(--noise)">noise memorised ρ</b>, <b style="color:var(--test)">response to fresh noise σ|w| (dashes)</b>, <b style="color:var(--signal)">signal learned γ (thick)</b>.'},
      {caption: 'Fresh samples (green), training samples (ticks), wrong labels (<b style="color:var(--noise)">×</b>). Right of 0: predicted as labelled.'},
    ],
    only: ["t"],
    compute: s => train({...setting(s), at}),
    draw: (v, result, s) => { forget(s); race(v, result, s); histogram(v, result, s); say(v, result, s); map(v, s); },
  });

  function race(v, {rows}, s) {
    const last = rows[rows.length - 1], top = 10 ** Math.ceil(Math.log10(Math.max(...rows.map(q => Math.max(q.gamma, q.rho, q.length)))));
    const a = axes({x: [1, start.steps], y: [top / 1e5, top], logx: true, logy: true, xlabel: "training step"});
    const curve = name => rows.filter(q => q.step && q[name] > 0).map(q => [q.step, q[name]]);
    const now = rows[Math.round(s.t)].step;
    v.svg(1, a.frame() + (now ? a.upright(now, {dash: "2 3"}) : "") + a.line(curve("rho"), {colour: "noise"}) + a.line(curve("length"), {colour: "test", dash: "6 3"}) +
      a.line(curve("gamma"), {colour: "signal", width: 3.5}), `At the end: noise memorised ${short(last.rho)}, response to fresh noise ${short(last.length)}, signal learned ${short(last.gamma)}.`);
  }

  function histogram(v, {rows, flipped}, s) {
    const row = rows[Math.round(s.t)], last = rows[rows.length - 1], all = [...last.fresh, ...last.train], BINS = 48;
    const lo = Math.min(-0.5, ...all), hi = Math.max(0.5, ...all), edges = Array.from({length: BINS + 1}, (_, i) => lo + i * (hi - lo) / BINS), bins = new Array(BINS).fill(0);
    for (const x of row.fresh) bins[Math.min(Math.max(Math.floor(BINS * (x - lo) / (hi - lo)), 0), BINS - 1)]++;
    const high = 1.5 * Math.max(...bins), a = axes({x: [lo, hi], y: [0, high], xlabel: "label × output", yticks: []});
    const mark = wrong => row.train.filter((_, i) => flipped[i] === wrong).map(x => [x, 0.88 * high]);
    const ticks = mark(false).map(([x]) => a.line([[x, 0.82 * high], [x, 0.94 * high]], {colour: "soft", width: 1.5})).join("");
    v.svg(2, a.frame() + a.bars(edges, bins) + ticks + a.crosses(mark(true)) + a.upright(0, {colour: "ink"}),
      `After step ${row.step}: ${Math.round(100 * row.testError)} % of fresh samples and ${Math.round(100 * row.trainError)} % of training samples lie left of zero.`);
  }

  function say(v, {rows, flipped}, given) {
    const s = setting(given), last = rows[rows.length - 1], wrong = flipped.filter(Boolean).length, missed = Math.round(last.trainError * s.n);
    const fitted = missed ? `${missed} of ${s.n} training labels are missed. ` : `All ${s.n} labels are fitted${wrong ? `, the ${wrong} wrong ones included` : ""}. `;
    const verdict = last.testError < FIT ? "benign." : last.testError > HARM ? "harmful." : "between benign and harmful.";
    v.say(`r = n|μ|⁴/(σ⁴d) = ${short(phase(s.n, s.mu, s.d))}. ${fitted}Error on fresh samples ${last.testError.toFixed(3)}: ${verdict}`);
  }

  function forget({n, p, model}) { // the map belongs to these; moving d and |μ| moves on it
    const now = [n, p, model, seed].join();
    if (drawn && drawn !== now) { cells = new Map(); stop(); }
    drawn = now;
  }

  function map(v, given) {
    const s = setting(given), canvas = v.panels[0], c = canvas.getContext("2d"), w = WIDE, h = HIGH, dx = w / CELLS, dy = h / CELLS;
    const X = d => LEFT + w * Math.log(d / D[0]) / Math.log(D[1] / D[0]), Y = mu => TOP + h * (1 - Math.log(mu / M[0]) / Math.log(M[1] / M[0]));
    c.clearRect(0, 0, canvas.width, canvas.height);
    c.fillStyle = v.colour("edge"); c.fillRect(LEFT, TOP, w, h);
    for (const [key, error] of cells) {
      const [i, j] = key.split(",").map(Number);
      c.fillStyle = viridis(2 * error); c.fillRect(LEFT + i * dx, TOP + h - (j + 1) * dy, dx + 0.5, dy + 0.5);
    }
    const border = () => { c.beginPath(); for (const d of D) c.lineTo(X(d), Y((3 * d / s.n) ** 0.25)); c.stroke(); };
    c.save(); c.beginPath(); c.rect(LEFT, TOP, w, h); c.clip();
    c.setLineDash([]); c.strokeStyle = "#fff"; c.lineWidth = 6; border();
    c.setLineDash([14, 9]); c.strokeStyle = "#000"; c.lineWidth = 3; border(); c.setLineDash([]); c.restore();
    for (const [width, colour] of [[8, "#fff"], [3, "#000"]]) { c.lineWidth = width; c.strokeStyle = colour; c.beginPath(); c.arc(X(s.d), Y(s.mu), 12, 0, 7); c.stroke(); }
    c.font = "27px system-ui"; c.fillStyle = v.colour("ink"); // words stand outside the cells
    const words = (align, list) => { c.textAlign = align; for (const [text, x, y] of list) c.fillText(text, x, y); };
    words("center", [["10²", X(1e2), h + TOP + 30], ["10⁴", X(1e4), h + TOP + 30], ["10⁶", X(1e6) - 12, h + TOP + 30], ["dimension d", LEFT + w / 2, canvas.height - 8]]);
    words("right", [["100", LEFT - 8, Y(100) + 16], ["|μ|", LEFT - 8, Y(30)], ["10", LEFT - 8, Y(10) + 9], ["1", LEFT - 8, Y(1)]]);
    canvas.setAttribute("aria-label", `Map of test error over dimension, 100 to a million, and signal strength, 1 to 100. ${cells.size} of ${CELLS ** 2} cells are trained. ` +
      `The present network is at d = ${short(s.d)}, signal ${short(s.mu)}.`);
  }

  const stop = () => { filling = 0; box.querySelector("[name=fill]").textContent = "Fill the map"; };
  function fill() { // a network a cell, in slices that leave the page responsive
    const token = filling = performance.now(), order = [], {uniform} = random(1, "order");
    for (let i = 0; i < CELLS; i++) for (let j = 0; j < CELLS; j++) if (!cells.has(i + "," + j)) order.push([i, j]);
    for (let i = order.length - 1; i > 0; i--) { const j = uniform() * (i + 1) | 0; [order[i], order[j]] = [order[j], order[i]]; }
    box.querySelector("[name=fill]").textContent = "Stop";
    const slice = () => {
      if (token !== filling || !box.isConnected) return;
      const end = performance.now() + 25, s = setting(view.values());
      while (order.length && performance.now() < end) {
        const [i, j] = order.pop(), d = Math.round(cell(...D, i)), mu = cell(...M, j);
        cells.set(i + "," + j, d < room(s.n) ? 0.5 : train({...s, d, mu, points: 96}).rows[0].testError);
      }
      map(view, view.values());
      if (order.length) setTimeout(slice, 0); else { stop(); box.dataset.filled = cells.size; }
    };
    slice();
  }

  const seen = new IntersectionObserver(entries => { // the first map fills while one looks; the button is for the next ones
    if (entries.some(e => e.isIntersecting)) { seen.disconnect(); fill(); }
  });
  seen.observe(box);

  const canvas = view.panels[0], go = (d, mu) => {
    view.set("d", Math.min(Math.max(d, D[0]), D[1])); view.set("mu", Math.min(Math.max(mu, M[0]), M[1])); view.refresh();
  };
  canvas.onclick = e => {
    const q = canvas.getBoundingClientRect(), zoom = canvas.width / q.width;
    const x = ((e.clientX - q.left) * zoom - LEFT) / WIDE, y = 1 - ((e.clientY - q.top) * zoom - TOP) / HIGH;
    go(D[0] * (D[1] / D[0]) ** x, M[0] * (M[1] / M[0]) ** y);
  };
  canvas.onkeydown = e => {
    const move = {ArrowLeft: [0.8, 1], ArrowRight: [1.25, 1], ArrowUp: [1, 1.1], ArrowDown: [1, 1 / 1.1]}[e.key], s = view.values();
    if (move) { e.preventDefault(); go(s.d * move[0], s.mu * move[1]); }
  };
  return view;
}

live.benign = {drawGram, Network, train, mount};
})(globalThis.flbookLive);
