/* The search for a direction: one neuron on the sphere, one sample a step, on the link h_k of one hidden coordinate.

   The overlap m is a Markov chain of three random numbers a step, so a step costs the same in any dimension d. Names and formulas
   are those of flbook/lectures/representation/online_sgd/sphere.py, where the derivation stands. */
(live => {
"use strict";
const {random, short, axes} = live;

// ---- random numbers: a ziggurat of 128 layers, since the chain asks for some ten million normal numbers
const EDGE = new Float64Array(129), HEIGHT = new Float64Array(129);
{
  const density = x => Math.exp(-x * x / 2), R = 3.442619855899, AREA = 9.91256303526217e-3; // where the tail begins; area of a layer
  EDGE[0] = AREA / density(R); EDGE[1] = R;
  for (let i = 2; i < 128; i++) EDGE[i] = Math.sqrt(-2 * Math.log(AREA / EDGE[i - 1] + density(EDGE[i - 1])));
  for (let i = 0; i < 129; i++) HEIGHT[i] = density(EDGE[i]);
}
function source(seed, role) {
  const {uniform} = random(seed, role);
  const normal = () => {
    for (;;) {
      const bits = uniform() * 4294967296 | 0, i = bits & 127, x = ((bits >> 7) + 0.5) / 16777216 * EDGE[i], size = Math.abs(x);
      if (size < EDGE[i + 1]) return x;
      if (i === 0) for (;;) { // the tail beyond R
        const e = -Math.log(1 - uniform()) / EDGE[1];
        if (-2 * Math.log(1 - uniform()) > e * e) return Math.sign(x) * (EDGE[1] + e);
      }
      if (HEIGHT[i] + uniform() * (HEIGHT[i + 1] - HEIGHT[i]) < Math.exp(-size * size / 2)) return x;
    }
  };
  const chiSquare = degrees => { // Marsaglia and Tsang 2000, for 2 degrees of freedom and more
    const q = degrees / 2 - 1 / 3, c = 1 / Math.sqrt(9 * q);
    for (;;) {
      const x = normal(), root = 1 + c * x, v = root * root * root, u = 1 - uniform(), y = x * x;
      if (root > 0 && (u < 1 - 0.0331 * y * y || Math.log(u) < y / 2 + q - q * v + q * Math.log(v))) return 2 * q * v;
    }
  };
  return {uniform, normal, chiSquare};
}

// ---- one neuron: target and student are both h_k
const HE = [() => 1, z => z, z => (z * z - 1) / Math.SQRT2, z => z * (z * z - 3) / Math.sqrt(6)];
const choose = (n, r) => { let c = 1; for (let i = 1; i <= r; i++) c *= (n - r + i) / i; return c; };

class Neuron {
  constructor(k, lr) {
    const root = Math.sqrt(k), below = HE[k - 1];
    Object.assign(this, {k, lr, link: HE[k], slope: u => root * below(u), powers: Array.from({length: k}, (_, r) => k * choose(k, r) * choose(k - 1, r) * choose(2 * r, r))});
  }
  factor(y, u) { return y * this.slope(u); }
  step(m, d, u, p, rest) { // `rest` is chi squared with d - 2 degrees of freedom
    const across = Math.sqrt(Math.max(1 - m * m, 0)), square = p * p + rest, move = this.lr / d * this.factor(this.link(m * u + across * p), u);
    return (m + move * across * p) / Math.sqrt(1 + move * move * square);
  }
  drift(m) { return this.k * m ** (this.k - 1) * (1 - m * m); } // A(m)
  power(m) { // V(m): products of Hermite polynomials, expanded in Hermite polynomials
    let sum = 0;
    for (let r = this.k - 1; r >= 0; r--) sum = sum * m * m + this.powers[r];
    return sum;
  }
  spread(m) { // (1 - m^2) E G^2 p^2: a step adds the variance (eta/d)^2 times this. A sum on a grid, exact for polynomials
    const c = Math.sqrt(1 - m * m), H = 0.5, density = z => H * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
    let sum = 0;
    for (let u = -10; u <= 10; u += H) for (let p = -10; p <= 10; p += H) sum += density(u) * density(p) * (this.factor(this.link(m * u + c * p), u) * c * p) ** 2;
    return sum;
  }
  rate(m) { return this.drift(m) - this.lr / 2 * m * this.power(m); } // of m in t = eta steps/d, as d grows
}

// ---- the equation
function solve(neuron, start, times, dt = 0.05) { // Runge-Kutta of order 4, in steps of dt or a little shorter, so that every time is met
  const path = [start];
  for (let j = 1, m = start; j < times.length; j++) {
    const gap = times[j] - times[j - 1], count = Math.max(1, Math.ceil(gap / dt - 1e-9)), h = gap / count;
    for (let i = 0; i < count; i++) {
      const k1 = neuron.rate(m), k2 = neuron.rate(m + h / 2 * k1), k3 = neuron.rate(m + h / 2 * k2), k4 = neuron.rate(m + h * k3);
      m += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    }
    path.push(m);
  }
  return path;
}
function searchTime(neuron, start, d, level = LEVEL) { // samples until the equation has |m| = level: the integral of dm/rate, by Simpson's rule
  const from = neuron.k % 2 ? start : Math.abs(start), log = neuron.k > 1, COUNT = 1000; // for k > 1 in log m: the wait is near zero
  if (from >= level) return 0;
  if (log && from <= 0) return Infinity;
  const at = x => log ? Math.exp(x) : x, [lo, hi] = log ? [Math.log(from), Math.log(level)] : [from, level];
  let sum = 0;
  for (let i = 0; i <= COUNT; i++) {
    const m = at(lo + (hi - lo) * i / COUNT), rate = neuron.rate(m);
    if (rate <= 0) return Infinity;
    sum += (i % COUNT ? 2 + 2 * (i % 2) : 1) * (log ? m : 1) / rate;
  }
  return d / neuron.lr * sum * (hi - lo) / (3 * COUNT);
}
const scale = (k, d) => k === 1 ? d : k === 2 ? d * Math.log(d) : d ** (k - 1); // the theorem's order of samples
const stepSize = (k, d, lr) => lr * d ** Math.min(0, 1 - k / 2);

// ---- many runs of the chain, together, in slices of time
const LEVEL = 0.5; // an overlap of this size counts as found
class Search {
  constructor(neuron, start, d, {runs = 12, at, stream}) { // `at`: numbers of steps (increasing) at which m is kept; stream(run): its random numbers
    Object.assign(this, {neuron, d, at, j: 0, r: 0, streams: Array.from({length: runs}, (_, r) => stream(r)), m: new Float64Array(runs).fill(start),
      n: new Float64Array(runs), reached: new Array(runs).fill(NaN), paths: Array.from({length: runs}, () => [])});
  }
  get found() { return this.reached.filter(n => n > 0).sort((a, b) => a - b); }
  get done() { return this.j >= this.at.length; }
  get median() { return this.found[this.m.length / 2 - 1] || NaN; } // when half of the runs have found it; final once all runs have come so far
  advance(r, to) {
    const {neuron, d, streams} = this, {u, p, rest} = streams[r], degrees = d - 2;
    let m = this.m[r], n = this.n[r], reached = this.reached[r];
    while (n < to) {
      m = neuron.step(m, d, u(), p(), rest(degrees));
      n++;
      if (n % 4 === 0 && !(reached > 0) && Math.abs(m) >= LEVEL) reached = n; // every fourth step, as in the library
    }
    this.m[r] = m; this.n[r] = n; this.reached[r] = reached;
  }
  work(ms, half = false) { // true when there is no more to do; with `half`, as soon as half of the runs have found it
    const end = performance.now() + ms;
    while (!this.done && !(half && this.r === 0 && this.median)) {
      const {r, at, j} = this;
      this.advance(r, Math.min(at[j], this.n[r] + 2000));
      if (this.n[r] === at[j]) {
        this.paths[r].push(this.m[r]);
        this.r = (r + 1) % this.m.length;
        if (!this.r) this.j++;
      }
      if (performance.now() > end) return false;
    }
    return true;
  }
}
const stream = (seed, role) => r => { // the same u and p at any d
  const {normal} = source(seed, `${role}, run ${r}`), {chiSquare} = source(seed, `${role}, run ${r}, rest`);
  return {u: normal, p: normal, rest: chiSquare};
};
const logSteps = (lo, hi, per) => { // zero, and `per` a decade
  const count = Math.ceil(per * Math.log10(hi / lo));
  return [...new Set([0, ...Array.from({length: count + 1}, (_, i) => Math.round(lo * (hi / lo) ** (i / count)))])];
};

// ---- the figure
const D = [10, 1e5], FOLLOWED = 2e6, DOT = 1e6, KS = [1, 2, 3], NAMES = ["", "h₁", "h₂", "h₃"], ORDER = ["", "d", "d log d", "d²"];
const horizon = (k, d, lr) => Math.round(4 * scale(k, d) / Math.min(lr, 1));
function mount(box, given = {}) {
  const first = {link: 2, d: 1000, lr: 0.5, start: 1, seed: 0, ...given};
  let seed = first.seed, now = null, seen = false, dots = new Map(), dotsOf = "";
  const spreads = {};
  const setting = s => ({k: +s.link, d: Math.round(s.d), lr: +s.lr.toPrecision(2), start: s.start});

  function compute(values) {
    const {k, d, lr, start} = setting(values), neuron = new Neuron(k, stepSize(k, d, lr)), m_0 = start / Math.sqrt(d), end = horizon(k, d, lr);
    const lo = Math.max(1, Math.min(end / 1e4, FOLLOWED / 100)), at = logSteps(lo, Math.min(end, FOLLOWED), 50), all = logSteps(lo, end, 50);
    const equation = solve(neuron, m_0, all.map(n => neuron.lr * n / d)), search = new Search(neuron, m_0, d, {at, stream: stream(seed, `degree ${k}`)});
    const waits = KS.map(q => Array.from({length: 33}, (_, i) => D[0] * (D[1] / D[0]) ** (i / 32)).map(x => [x, searchTime(new Neuron(q, stepSize(q, x, lr)), start / Math.sqrt(x), x)]));
    if (!spreads[k]) spreads[k] = [...Array.from({length: 48}, (_, i) => 10 ** (i / 16 - 3)), 0.9, 0.95, 0.98, 0.995, 1].map(m => [m, neuron.spread(m)]);
    if (dotsOf !== [lr, start, seed].join()) { dots = new Map(); dotsOf = [lr, start, seed].join(); }
    search.work(10);
    delete box.dataset.done;
    return now = {k, d, lr, start, neuron, m_0, end, lo, all, equation, wait: searchTime(neuron, m_0, d), search, waits, spreads: spreads[k]};
  }

  const view = live.figure(box, {
    label: "Live figure: twelve runs of online SGD search for a direction",
    controls: [
      {name: "link", kind: "choice", label: "link", value: first.link, choices: {1: "h₁ (k = 1)", 2: "h₂ (k = 2)", 3: "h₃ (k = 3)"}},
      {name: "d", kind: "range", label: "dimension d", min: D[0], max: D[1], step: 0.05, log: true, value: first.d, show: d => short(Math.round(d))},
      {name: "lr", kind: "range", label: "step size η", min: 0.05, max: 5, step: 0.05, log: true, value: first.lr, show: (lr, q) => short(q.lr) + (q.k > 2 ? "/√d" : "")},
      {name: "start", rest: true, kind: "range", label: "start m₀", min: -1.5, max: 1.5, step: 0.25, value: first.start, show: s => s ? short(s) + "/√d" : "0"},
      {name: "again", kind: "button", label: "New runs", act: v => { seed++; v.refresh(); }},
    ],
    panels: [
      {caption: "Overlap |m| of twelve runs (thin) after n samples. Dashed: the equation, without random steps. Dotted upright: the theorem’s order of n."},
      {caption: 'Mean change of m² in t = ηn/d, over 2m: <b style="color:var(--signal)">drift</b>; <b style="color:var(--noise)">noise takes away (dashes)</b>; <b style="color:var(--noise)">random steps add (dots)</b>. Ring: the start.'},
      {caption: "Samples until half of twelve runs have |m| ≥ ½: h₁ ●, h₂ ■, h₃ ▲ (at small d by chance, too). Dashed: the equation. Ring: the present runs."},
    ],
    compute,
    draw: (v, q) => { runs(v, q); forces(v, q); waits(v, q); say(v, q); resume(); },
  });

  function runs(v, {k, d, search, all, equation, end, lo}) {
    const a = axes({x: [lo, end], y: [0, 1], logx: true, xlabel: "samples n", ylabel: "|m|"}), at = search.at, order = scale(k, d);
    const path = m => m.map((x, j) => [at[j], Math.abs(x)]).filter(([n]) => n >= lo);
    const halo = 'style="paint-order:stroke;stroke:var(--ground);stroke-width:5px"', cut = end > FOLLOWED && search.done; // longer than runs are followed here
    v.svg(0, a.frame() + a.line([[lo, LEVEL], [end, LEVEL]], {colour: "soft", width: 1.5, dash: "2 4"}) + search.paths.map(m => a.line(path(m), {colour: "signal", width: 1.1})).join("") +
      a.upright(order, {dash: "2 3"}) + a.line(all.map((n, j) => [n, Math.abs(equation[j])]).filter(([n]) => n >= lo), {dash: "7 4", width: 2.5}) + a.words(a.px(order) - 5, 14, ORDER[k], `text-anchor="end" ${halo}`) +
      (cut ? a.line([[FOLLOWED, 0], [FOLLOWED, 0.1]], {colour: "signal"}) + a.words(a.px(FOLLOWED), a.py(0.13), "runs end", `text-anchor="${FOLLOWED * 100 > end ? "end" : "start"}" ${halo}`) : ""),
      `Overlap of twelve runs up to ${short(Math.max(...search.n))} samples: ${search.found.length} have reached one half. The equation ends at ${short(Math.abs(equation[equation.length - 1]))}.`);
  }

  function forces(v, {neuron, d, m_0, spreads}) {
    const low = 1e-6, high = 10, a = axes({x: [1e-3, 1], y: [low, 100], logx: true, logy: true, xlabel: "overlap m", ylabel: "rate"}), size = Math.abs(m_0);
    const curve = (f, how) => a.line(spreads.map(([m, K]) => [m, f(m, K)]).filter(([, s]) => s > low && s < high), how), A = Math.abs(neuron.drift(m_0));
    v.svg(1, a.frame() + curve(m => neuron.lr / 2 * m * neuron.power(m), {colour: "noise", dash: "7 4"}) + curve((m, K) => neuron.lr * K / (2 * d * m), {colour: "noise", dash: "2 3"}) +
      curve(m => neuron.drift(m), {colour: "signal", width: 3}) + (size ? a.line([[size, low], [size, A]], {colour: "soft", width: 1.5, dash: "2 3"}) + mark(a, 0, size, A, {ring: true}) : ""), size
      ? `At the start, overlap ${short(size)}: drift ${short(A)}, noise takes away ${short(neuron.lr / 2 * size * neuron.power(size))}, random steps add ${short(neuron.lr * neuron.spread(size) / (2 * d * size))}.`
      : "The start is at overlap 0.");
  }

  const SHAPES = [(x, y, s) => `<circle cx="${x}" cy="${y}" r="${s}"`, (x, y, s) => `<rect x="${x - s}" y="${y - s}" width="${2 * s}" height="${2 * s}"`, (x, y, s) => `<path d="M${x} ${y - 1.2 * s}l${1.2 * s} ${2.1 * s}h${-2.4 * s}z"`];
  const mark = (a, shape, x, y, {colour = "signal", ring = false} = {}) => SHAPES[shape](+a.px(x).toFixed(1), +a.py(y).toFixed(1), ring ? 7 : 4) +
    (ring ? ' fill="none" stroke="var(--ink)" stroke-width="2"/>' : ` fill="var(--${colour})"/>`);

  function waits(v, {k, d, waits, search}) {
    const a = axes({x: [7, 1.4e5], y: [1, 1e12], logx: true, logy: true, xlabel: "dimension d", ylabel: "samples n"}), found = [...dots].filter(([, [, , n]]) => n > 0).map(([, dot]) => dot);
    const lines = KS.map((q, i) => {
      const line = waits[i].filter(([, n]) => n < Infinity), last = line[line.length - 1];
      return line.length ? a.line(line, {dash: "7 4"}) + (last[0] === D[1] ? a.words(a.px(last[0]) - 4, a.py(last[1]) + (q === 1 ? 20 : -8), NAMES[q], 'text-anchor="end"') : "") : "";
    });
    v.svg(2, a.frame() + lines.join("") + found.map(([q, x, n]) => mark(a, q - 1, x, n, {colour: q === k ? "signal" : "soft"})).join("") +
      (search.median ? mark(a, k - 1, d, search.median) + mark(a, 0, d, search.median, {ring: true}) : ""),
      `Samples of the search against dimension. ${KS.map(q => `${NAMES[q]}: ${found.filter(([p]) => p === q).sort((x, y) => x[1] - y[1]).map(([, x, n]) => `${short(n)} at d = ${short(x)}`).join(", ") || "none measured"}`).join(". ")}.`);
  }

  function say(v, {k, d, lr, neuron, m_0, search, equation, wait}) {
    const found = search.found.length, count = search.m.length, far = short(Math.max(...search.n)), size = Math.abs(m_0), times = x => `${short(+x.toPrecision(2))} times the drift`;
    const measured = !search.done ? `Twelve runs of SGD on ${NAMES[k]} in ${short(d)} dimensions.` : !found ? `None of ${count} runs reached |m| = ½ in ${far} samples.`
      : `${found === count ? "All" : `${found} of`} ${count} runs reached |m| = ½` + (search.median ? `, half of them by n = ${short(search.median)} (${short(search.median / d)} per dimension)` : "") + (found < count ? `, the others not in ${far}.` : ".");
    const last = Math.abs(equation[equation.length - 1]), law = wait < Infinity ? `The equation says n = ${short(wait)}` : last < size / 2 || !size ? "The equation ends at m = 0" : `The equation stops at m = ${short(last)}`;
    const push = neuron.drift(size), pull = neuron.lr / 2 * size * neuron.power(size), kick = neuron.lr * neuron.spread(size) / (2 * d * size);
    const forces = !size ? k > 1 ? " From m = 0 only random steps lead away." : "" : m_0 < 0 && k % 2 ? " The start lies on the wrong side: the drift leads to 0 first."
      : ` At the start noise takes away ${times(pull / push)}, and random steps add ${times(kick / push)}.`;
    v.say(`${measured} ${law}, the theorem’s order is ${ORDER[k]}${k > 1 ? ` = ${short(scale(k, d))}` : ""}.${forces}`);
  }

  function* measurements() { // for the dots: cheap ones first
    const tasks = KS.flatMap(k => Array.from({length: 9}, (_, i) => Math.round(10 ** (1 + i / 2))).map(d => [k, d])).filter(([k, d]) => scale(k, d) < DOT / 4);
    for (const [k, d] of tasks.sort((a, b) => scale(...a) - scale(...b))) if (!dots.has(k + "," + d)) yield [k, d];
  }

  let waiting = false;
  function resume() { // first the runs, then the dots, in slices that leave the page responsive, while one looks
    if (waiting || !seen || !now || box.dataset.done) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      if (!box.isConnected || !now) return;
      if (!now.search.done) {
        now.search.work(25);
        runs(view, now);
        if (now.search.done) { say(view, now); waits(view, now); }
        return resume();
      }
      const end = performance.now() + 25, {lr, start} = now;
      for (const [k, d] of measurements()) {
        const key = k + "," + d;
        if (!now.dot || now.dot.key !== key) now.dot = {key, search: new Search(new Neuron(k, stepSize(k, d, lr)), start / Math.sqrt(d), d,
          {at: logSteps(1, Math.min(horizon(k, d, lr), DOT), 20), stream: stream(seed, `degree ${k} at ${d}`)})};
        if (!now.dot.search.work(end - performance.now(), true)) return resume();
        dots.set(key, [k, d, now.dot.search.median]);
        waits(view, now);
        if (performance.now() > end) return resume();
      }
      box.dataset.done = "all";
    });
  }
  new IntersectionObserver(entries => { seen = entries[entries.length - 1].isIntersecting; resume(); }).observe(box);
  return view;
}

live.search = {source, Neuron, solve, searchTime, scale, stepSize, Search, stream, logSteps, mount};
})(globalThis.flbookLive);
