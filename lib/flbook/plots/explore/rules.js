/* One data set, one start, six rules: a two-layer network trained in weights by the rule that the reader chooses.

   Adam and sign descent leave the span of the samples, so the state is the filters themselves, in d dimensions. Names and formulas
   are those of flbook/training/optimizers.py and flbook/dynamics/weights.py; the noise is orthogonal to the signal mu = |mu| e_1. */
(live => {
"use strict";
const {random, cholesky, short, errorOf, axes} = live;

// ---- the network: m filters for the label +1, then m for -1, mean over filters, activation max(z, 0)^q, logistic loss
class Network {
  constructor({n, d, m, mu, xi, w, q = 1, y = Float64Array.from({length: n}, (_, i) => 1 - 2 * (i % 2))}) { // xi: rows of n patches; w: rows of 2m filters
    const k = 2 * m, N = n + 1, on = new Float64Array(N * N);
    Object.assign(this, {n, d, m, k, mu, xi, q, y, start: w, f: new Float64Array(n), z: new Float64Array(k * n)});
    on[0] = mu * mu; // inner products of the signal and the patches, for `decompose`
    for (let i = 0; i < n; i++) {
      on[i + 1] = on[(i + 1) * N] = mu * xi[i * d];
      for (let p = 0; p <= i; p++) on[(i + 1) * N + p + 1] = on[(p + 1) * N + i + 1] = this.dot(xi, i, xi, p);
    }
    this.gram = on; this.L = cholesky(on, N, 0);
  }
  dot(a, i, b, j, from = 0) {
    const {d} = this;
    let s = 0, s1 = 0, s2 = 0, s3 = 0, u = i * d + from, v = j * d + from;
    const end = (i + 1) * d;
    for (; u + 3 < end; u += 4, v += 4) { // four sums at a time do not wait for each other
      s += a[u] * b[v]; s1 += a[u + 1] * b[v + 1]; s2 += a[u + 2] * b[v + 2]; s3 += a[u + 3] * b[v + 3];
    }
    for (; u < end; u++, v++) s += a[u] * b[v];
    return s + s1 + (s2 + s3);
  }
  weight(r) { return (r < this.m ? 1 : -1) / this.m; }
  respond(z) { return z > 0 ? this.q === 1 ? z : z * z : 0; }
  slope(z) { return z > 0 ? this.q === 1 ? 1 : 2 * z : 0; }
  predict(w) { // outputs on the training samples; what filters and patches make of each other stays in z
    const {n, d, k, mu, xi, y, f, z} = this;
    f.fill(0);
    for (let r = 0; r < k; r++) {
      const a = this.weight(r), on_mu = mu * w[r * d], plus = a * this.respond(on_mu), minus = a * this.respond(-on_mu);
      for (let i = 0; i < n; i++) f[i] += a * this.respond(z[r * n + i] = this.dot(w, r, xi, i)) + (y[i] > 0 ? plus : minus);
    }
    return f;
  }
  gradient(w, observed, out) { // of the training loss, written into `out`
    const {n, d, k, mu, xi, y, z} = this, f = this.predict(w), derivative = f.map((s, i) => -observed[i] / (1 + Math.exp(observed[i] * s)) / n);
    out.fill(0);
    for (let r = 0; r < k; r++) {
      const a = this.weight(r), on_mu = mu * w[r * d], row = r * d;
      let along = 0;
      for (let i = 0; i < n; i++) {
        along += derivative[i] * this.slope(y[i] * on_mu) * y[i];
        const c = a * derivative[i] * this.slope(z[r * n + i]);
        if (c !== 0) for (let p = 0, at = i * d; p < d; p++, at++) out[row + p] += c * xi[at];
      }
      out[row] += a * mu * along;
    }
    return out;
  }
  trainLoss(w) {
    const x = this.predict(w).map((s, i) => s * this.y[i]);
    return x.reduce((sum, s) => sum + Math.log1p(Math.exp(-Math.abs(s))) + Math.max(-s, 0), 0) / this.n;
  }
  decompose(w) { // gamma and rho of every filter: least squares of its move on the signal and the patches
    const {n, d, k, mu, xi, start, gram, L} = this, N = n + 1, move = w.map((x, at) => x - start[at]), gamma = new Float64Array(k), rho = new Float64Array(k * n), c = new Float64Array(N);
    for (let r = 0; r < k; r++) {
      for (let i = 0; i < N; i++) {
        let s = i ? this.dot(move, r, xi, i - 1) : mu * move[r * d];
        for (let p = 0; p < i; p++) s -= L[i * N + p] * c[p];
        c[i] = s / L[i * N + i];
      }
      for (let i = N - 1; i >= 0; i--) {
        let s = c[i];
        for (let p = i + 1; p < N; p++) s -= L[p * N + i] * c[p];
        c[i] = s / L[i * N + i];
      }
      gamma[r] = (r < this.m ? 1 : -1) * gram[0] * c[0];
      for (let i = 0; i < n; i++) rho[r * n + i] = gram[(i + 1) * (N + 1)] * c[i + 1];
    }
    return {gamma, rho};
  }
  fresh(w, standard) { // true label times output on fresh samples of both labels; standard: rows of 2m standard normal numbers
    const {d, k, mu} = this, cov = new Float64Array(k * k), z = new Float64Array(k), out = [];
    let plus = 0, minus = 0;
    for (let r = 0; r < k; r++) {
      for (let l = 0; l <= r; l++) cov[r * k + l] = cov[l * k + r] = this.dot(w, r, w, l, 1); // fresh noise does not meet the first coordinate
      cov[r * (k + 1)] += 1e-10 * this.dot(w, r, w, r);
      plus += this.weight(r) * this.respond(mu * w[r * d]);
      minus += this.weight(r) * this.respond(-mu * w[r * d]);
    }
    const L = cholesky(cov, k, 0);
    for (let at = 0; at + k <= standard.length; at += k) {
      let s = 0;
      for (let r = 0; r < k; r++) {
        z[r] = 0;
        for (let p = 0; p <= r; p++) z[r] += L[r * k + p] * standard[at + p];
        s += this.weight(r) * this.respond(z[r]);
      }
      out.push(plus + s, -minus - s);
    }
    return out;
  }
}

// ---- the rules; a step changes run.w, in which run.t steps have been taken before. `lr`: step sizes for q = 1 and 2; `own`: a number of the rule's own
const move = (w, lr, direction) => { for (let at = 0; at < w.length; at++) w[at] -= lr * direction[at]; };
const descend = run => move(run.w, run.lr, run.net.gradient(run.w, run.net.y, run.g));
const RULES = {
  gd: {name: "gradient descent", lr: [0.2, 0.5], step: descend},
  sam: {name: "SAM, then GD", lr: [0.2, 0.5], own: "SAM radius r", values: [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.5, 2], value: 0.5, step(run) {
    const {net, w, g} = run;
    if (run.t >= Math.floor(run.steps / 2)) return descend(run);
    net.gradient(w, net.y, g);
    const length = Math.sqrt(g.reduce((s, x) => s + x * x, 0)), reach = run.own / Math.max(length, 2.2250738585072014e-308);
    move(w, run.lr, net.gradient(w.map((x, at) => x + reach * g[at]), net.y, g));
  }},
  noise: {name: "label noise", lr: [0.2, 0.5], own: "flip probability p", values: [0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45], value: 0.3, step(run) { // flips are drawn afresh for each sample and step
    const {net, w, g} = run;
    move(w, run.lr, net.gradient(w, net.y.map(s => run.unit() < run.own ? -s : s), g));
  }},
  momentum: {name: "momentum", lr: [0.2, 0.5], own: "memory β", values: [0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999], value: 0.98, step(run) { // averaged: v = beta v + (1 - beta) g
    const {net, w, g, v} = run;
    net.gradient(w, net.y, g);
    for (let at = 0; at < w.length; at++) v[at] = run.own * v[at] + (1 - run.own) * g[at];
    move(w, run.lr, v);
  }},
  adam: {name: "Adam", lr: [0.01, 0.01], step(run, one = 0.9, two = 0.999, epsilon = 1e-8) {
    const {net, w, g, v, u, lr} = run, first = 1 - one ** (run.t + 1), second = 1 - two ** (run.t + 1);
    net.gradient(w, net.y, g);
    for (let at = 0; at < w.length; at++) {
      v[at] = one * v[at] + (1 - one) * g[at];
      u[at] = two * u[at] + (1 - two) * g[at] * g[at];
      w[at] -= lr * v[at] / first / (Math.sqrt(u[at] / second) + epsilon);
    }
  }},
  sign: {name: "sign descent", lr: [0.002, 0.002], step(run) {
    const {net, w, g} = run;
    net.gradient(w, net.y, g);
    for (let at = 0; at < w.length; at++) w[at] -= run.lr * Math.sign(g[at]);
  }},
};

const logSteps = (steps, points = 40) => [...new Set([0, steps, Math.floor(steps / 2), ...Array.from({length: points}, (_, i) => Math.round(steps ** (i / (points - 1))))])].sort((a, b) => a - b);

class Run { // one rule from the common start; unit(): the uniform numbers that decide on flips
  constructor(net, rule, {lr, own, steps = 400, unit, standard}) {
    const zero = () => new Float64Array(net.start.length);
    Object.assign(this, {net, rule, lr, own, steps, unit, standard, t: 0, diverged: false, w: net.start.slice(), g: zero(), v: zero(), u: zero(), at: logSteps(steps), rows: []});
  }
  step() { RULES[this.rule].step(this); this.t++; }
  get done() { return this.diverged || this.rows.length === this.at.length; }
  get last() { return this.rows[this.rows.length - 1]; }
  record() {
    const {net, w, t} = this, {gamma, rho} = net.decompose(w), loss = net.trainLoss(w);
    if (!(loss < 1e4)) this.diverged = true; // not a number, too
    else this.rows.push({step: t, gamma: Math.max(...gamma), rho: Math.max(...rho), loss, error: errorOf(net.fresh(w, this.standard))});
  }
  work(ms) { // for so long, or until done
    const end = performance.now() + ms;
    while (!this.done && performance.now() < end) if (this.t === this.at[this.rows.length]) this.record(); else this.step();
    return this.done;
  }
}

const ROOM = 400; // the largest dimension: a smaller one keeps the first coordinates, so that moving d does not draw again
const SIGMA_0 = 0.01;
function draw({n, m, d, mu, q = 1, seed = 0}) { // a network at its start, and its data
  const rows = (count, role, size) => {
    const {normal} = random(seed, role), all = Float64Array.from({length: count * ROOM}, normal);
    return Float64Array.from({length: count * d}, (_, at) => size * all[(at / d | 0) * ROOM + at % d]);
  };
  const xi = rows(n, "noise", 1);
  for (let i = 0; i < n; i++) xi[i * d] = 0; // orthogonal to the signal
  return new Network({n, d, m, mu, q, xi, w: rows(2 * m, "weights", SIGMA_0)});
}

// ---- the figure
const NAMES = Object.keys(RULES), CHANCE = 0.5, POINTS = 1024, FITTED = 0.1, nearest = (values, v) => values.reduce((best, x, i) => Math.abs(x - v) < Math.abs(values[best] - v) ? i : best, 0);
const HALO = 'style="paint-order:stroke;stroke:var(--ground);stroke-width:5px"', two = x => short(+x.toPrecision(2));
function mount(box, given = {}) {
  const first = {rule: "sam", mu: 1.2, d: 200, factor: 1, activation: "relu", radius: RULES.sam.value, p: RULES.noise.value, beta: RULES.momentum.value, n: 20, seed: 0, ...given};
  const {n} = first, m = 5, steps = 600, own = {sam: first.radius, noise: first.p, momentum: first.beta}; // a rule's own number stays while another rule is looked at
  for (const rule in own) own[rule] = nearest(RULES[rule].values, own[rule]);
  let seed = first.seed, shown = "", net, netKey = "", runs = {}, standard, working = 0;
  const number = rule => RULES[rule].own ? RULES[rule].values[own[rule]] : undefined;

  function compute(s) {
    if (s.rule !== shown) shown = s.rule; else if (RULES[shown].own) own[shown] = s.own;
    offer();
    const q = s.activation === "relu" ? 1 : 2, setting = {n, m, d: Math.max(n + 2, Math.round(s.d)), mu: +s.mu.toPrecision(3), q, seed}, key = JSON.stringify(setting), factor = +s.factor.toPrecision(2);
    if (key !== netKey) {
      net = draw(setting);
      standard = Float64Array.from({length: POINTS * 2 * m}, random(seed, "test").normal);
      netKey = key;
    }
    for (const rule of NAMES) { // a run that no change concerns is kept
      const all = key + [factor, own[rule]], lr = +(factor * RULES[rule].lr[q - 1]).toPrecision(3);
      if (!runs[rule] || runs[rule].key !== all) runs[rule] = Object.assign(new Run(net, rule, {lr, own: number(rule), steps, unit: random(seed, "flips").uniform, standard}), {key: all});
    }
    delete box.dataset.done;
    const order = [...new Set([shown, "gd", ...NAMES])].map(rule => runs[rule]), now = {chosen: order[0], gd: runs.gd, order, setting};
    work(now, 12);
    return now;
  }
  function work({order}, ms) { // true when all are trained
    const end = performance.now() + ms;
    for (const run of order) if (!run.work(end - performance.now())) return false;
    return true;
  }
  function carryOn(now) { // in slices that leave the page responsive
    const token = ++working, slice = () => {
      if (token !== working || !box.isConnected) return;
      const done = work(now, 20);
      pictures(view, now);
      if (done) box.dataset.done = now.order.length; else setTimeout(slice, 0);
    };
    setTimeout(slice, 0);
  }
  function offer() { // the slider of the rule's own number
    const input = box.querySelector("[name=own]"), {own: label, values} = RULES[shown];
    input.parentElement.firstChild.data = (label || "rule’s own number") + " ";
    input.disabled = !label;
    if (label) { input.max = values.length - 1; view.set("own", own[shown]); }
  }

  const view = live.figure(box, {
    label: "Live figure: one network, one data set, and the rule that trains it",
    controls: [
      {name: "rule", kind: "choice", label: "rule", value: first.rule, choices: Object.fromEntries(NAMES.map(rule => [rule, RULES[rule].name]))},
      {name: "activation", rest: true, kind: "choice", label: "activation", value: first.activation, choices: {relu: "ReLU", square: "ReLU squared"}},
      {name: "mu", kind: "range", label: "signal |μ|", min: 0.5, max: 5, step: 0.02, log: true, value: first.mu},
      {name: "d", rest: true, kind: "range", label: "dimension d", min: 40, max: ROOM, step: 0.05, log: true, value: first.d, show: (d, {setting}) => short(setting.d)},
      {name: "factor", kind: "range", label: "step size", min: 0.1, max: 10, step: 0.1, log: true, value: first.factor, show: (f, {chosen}) => `× ${short(+f.toPrecision(2))} (η = ${short(chosen.lr)})`},
      {name: "own", kind: "range", label: "SAM radius r", min: 0, max: 11, step: 1, value: 0, show: () => RULES[shown].own ? short(number(shown)) : "(none)"},
      {name: "again", rest: true, kind: "button", label: "New data", act: v => { seed++; v.refresh(); }},
    ],
    panels: [
      {caption: '<b style="color:var(--signal)">Signal learned, largest γ (thick)</b>; <b style="color:var(--noise)">noise memorised, largest ρ (dashes)</b>. Thin grey: the same under gradient descent.'},
      {caption: '<b style="color:var(--test)">Test error (thick)</b>, training loss (grey). Thin dashes: test error under gradient descent.'},
      {caption: "Test error at the end of each rule, on this draw; ▸ is the chosen one. Dotted: guessing. Click a bar to choose its rule."},
    ],
    compute,
    draw: (v, now) => { pictures(v, now); carryOn(now); },
  });
  const bar = box.querySelector(".fll-bar");
  bar.before(box.querySelector(".fll-buttons")); // the rule comes first
  view.panels[2].onclick = e => {
    const row = e.target.closest("[data-rule]");
    if (row) { view.set("rule", row.dataset.rule); view.refresh(); }
  };

  function pictures(v, now) { race(v, now); errors(v, now); all(v, now); if (now.chosen.done && now.gd.done) say(v, now); else if (!box.querySelector(".fll-say").textContent) v.say("The networks are being trained."); }
  const ends = (a, {rule}, at = Math.floor(steps / 2)) => rule !== "sam" ? "" : // here SAM hands over
    a.upright(at, {dash: "2 3"}) + a.words(a.px(at) - 4, 18, "SAM", 'text-anchor="end"') + a.words(a.px(at) + 4, 18, "GD");
  const curve = (run, name) => run.rows.filter(q => q.step).map(q => [q.step, q[name]]);

  function race(v, {chosen, gd}) {
    const low = 1e-3, up = curve(chosen, "rho").concat(curve(gd, "rho"), curve(chosen, "gamma")).reduce((s, [, x]) => Math.max(s, x), 100);
    const a = axes({x: [1, steps], y: [low, 10 ** Math.ceil(Math.log10(up) - 1e-9)], logx: true, logy: true, xlabel: "training step"});
    const line = (run, name, how) => a.line(curve(run, name).filter(([, x]) => x > low), how), {gamma, rho} = chosen.last || {gamma: 0, rho: 0};
    v.svg(0, a.frame() + ends(a, chosen) + line(gd, "rho", {colour: "soft", width: 1.4, dash: "6 3"}) + line(gd, "gamma", {colour: "soft", width: 1.4}) +
      line(chosen, "rho", {colour: "noise", width: 2.5, dash: "6 3"}) + line(chosen, "gamma", {colour: "signal", width: 3.5}), `At step ${chosen.t}: signal learned ${short(gamma)}, noise memorised ${short(rho)}.`);
  }

  function errors(v, {chosen, gd}) {
    const a = axes({x: [1, steps], y: [0, 0.75], logx: true, xlabel: "training step"}), {loss, error} = chosen.last || {loss: 0, error: 0};
    const f = floor(chosen), high = f > 0.25, level = chosen.rule !== "noise" ? "" : a.line([[1, f], [steps, f]], {width: 1.5, dash: "7 4"}) + // the words stand where the curves are not
      a.words(a.px(high ? steps : 1) + (high ? 0 : 4), a.py(f) + (f > 0.08 ? 15 : -5), "−ln(1 − p)", (high ? 'text-anchor="end" ' : "") + HALO);
    v.svg(1, a.frame() + ends(a, chosen) + a.line(curve(gd, "error"), {colour: "test", width: 1.4, dash: "6 3"}) + a.line(curve(chosen, "loss"), {colour: "soft", width: 2}) + a.line(curve(chosen, "error"), {colour: "test", width: 3.5}) + level,
      `At step ${chosen.t}: training loss ${short(loss)}, test error ${error.toFixed(3)}.`);
  }

  const ending = ({done, diverged, last}, waiting) => diverged ? "diverges" : done ? last.error.toFixed(2) : waiting;
  function all(v, {chosen}) {
    const a = axes({x: [0, 1], y: [0, 1]}), LEFT = 130, FULL = 94, ROW = 27, TOP = 8, FOOT = TOP + NAMES.length * ROW, x = e => LEFT + FULL * Math.min(e / CHANCE, 1);
    const bars = NAMES.map((rule, i) => {
      const {done, diverged, last} = runs[rule], y = TOP + i * ROW, width = done && !diverged ? Math.max(x(last.error) - LEFT, 1) : 0;
      return `<rect x="0" y="${y}" width="260" height="${ROW}" fill="var(--ground)" data-rule="${rule}"/>` +
        `<rect x="${LEFT}" y="${y + 4}" width="${width.toFixed(1)}" height="${ROW - 8}" fill="var(--test)" opacity="${rule === chosen.rule ? 0.95 : 0.45}" data-rule="${rule}"/>`;
    });
    const names = NAMES.map((rule, i) => {
      const {done, diverged, last} = runs[rule], y = TOP + i * ROW + 18, mine = rule === chosen.rule, how = `data-rule="${rule}" `, bold = mine ? 'font-weight="700" ' : "";
      return a.words(LEFT - 5, y, (mine ? "▸ " : "") + RULES[rule].name, how + 'text-anchor="end"') + a.words((done && !diverged ? x(last.error) : LEFT) + 5, y, ending(runs[rule], "…"), how + bold + HALO);
    });
    const line = (at, dash) => `<path d="M${at} ${TOP}V${FOOT}" stroke="var(--soft)" stroke-width="1.5" pointer-events="none"${dash}/>`;
    v.svg(2, `<g style="cursor:pointer">${bars.join("")}${line(LEFT, "")}${line(x(CHANCE), ' stroke-dasharray="2 3"')}${names.join("")}</g>` + a.words(LEFT, FOOT + 15, "0", 'text-anchor="middle"') + a.words(x(CHANCE), FOOT + 15, "½", 'text-anchor="middle"'),
      "Test error at the end: " + NAMES.map(rule => RULES[rule].name + " " + ending(runs[rule], "not yet known")).join(", ") + ".");
  }

  const floor = run => -Math.log(1 - run.own); // training loss if all margins are log((1-p)/p)
  const fitted = run => run.rows.find(q => q.loss < FITTED);
  const share = ({gamma, rho}) => rho > gamma ? `noise memorised is ${two(rho / gamma)} times the signal learned` : `the signal learned is ${two(gamma / rho)} times the noise memorised`;
  function fits(run) {
    const then = fitted(run);
    return then ? `has a training loss below ${FITTED} at step ${then.step}, and there ${share(then)}` : `ends at a training loss of ${two(run.last.loss)}, and there ${share(run.last)}`;
  }
  function say(v, {chosen, gd, order}) {
    const {rule, rows, last} = chosen, half = run => run.rows.find(q => q.step === Math.floor(steps / 2)) || run.last, on = half(chosen), plain = half(gd), other = fitted(gd);
    const beside = rule !== "gd" && other ? ` (gradient descent: step ${other.step}, ${two(other.rho / other.gamma)} times)` : "";
    const words = {
      gd: () => `Gradient descent ${fits(gd)}.`,
      sam: () => `${on.rho < plain.rho / 4 ? "SAM keeps the noise down while the signal grows" : on.gamma > on.rho && plain.gamma < plain.rho ? "Under SAM the signal leads, not the noise" : on.gamma > 1.5 * plain.gamma ? "SAM learns more of the signal but memorises, too" : "SAM at this radius does not keep the noise down"}: ` +
        `after its ${on.step} steps ρ = ${two(on.rho)} and γ = ${two(on.gamma)}, under gradient descent ρ = ${two(plain.rho)} and γ = ${two(plain.gamma)}.`,
      noise: () => { const late = rows.filter(q => q.step >= steps / 2), mean = late.reduce((s, q) => s + q.loss, 0) / late.length;
        return `Wrong labels keep the training loss from zero: it is about ${mean.toFixed(2)} (theory for equal margins: −ln(1 − p) = ${floor(chosen).toFixed(2)}). ρ ends at ${two(last.rho)}, under gradient descent at ${two(gd.last.rho)}; γ at ${two(last.gamma)} and ${two(gd.last.gamma)}.`; },
      momentum: () => `Momentum, a mean over about ${short(Math.round(1 / (1 - chosen.own)))} steps, ${fits(chosen)}${beside}.`,
      adam: () => `Adam ${fits(chosen)}${beside}.`,
      sign: () => `Sign descent ${fits(chosen)}${beside}.`,
    };
    const rest = order.every(run => run.done && !run.diverged) ? NAMES.slice().sort((a, b) => runs[a].last.error - runs[b].last.error) : [];
    const error = `Test error at the end ${last.error.toFixed(2)}` + (rule !== "gd" ? `; gradient descent ${ending(gd)}.` : rest.length ? `; the six rules range from ${runs[rest[0]].last.error.toFixed(2)} to ${runs[rest[5]].last.error.toFixed(2)}.` : ".");
    v.say(chosen.diverged ? `At this step size ${RULES[rule].name} diverges.` : (chosen.own === 0 ? `With ${RULES[rule].own.split(" ").pop()} = 0 the rule is gradient descent: it ${fits(chosen)}.` : words[rule]()) + " " + error);
  }
  return view;
}

live.rules = {Network, Run, RULES, draw, mount};
})(globalThis.flbookLive);
