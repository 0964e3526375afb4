/* A pool of tasks: from which size on its Bayes rule stops looking tasks up and answers like ridge regression.

   All rules are exact, on one drawn set of prompts. Formulas: flbook/lectures/in_context_learning/task_diversity/pool_information.py,
   and DiscreteMMSE and Ridge of flbook/estimators/in_context.py. */
(live => {
"use strict";
const {random, short, axes, cholesky} = live;

// ---- one prompt: X'X and X'y over the noise's variance are all that a rule reads
function sums(x, y, noise) {
  const d = x[0].length, A = new Float64Array(d * d), b = new Float64Array(d);
  x.forEach((row, i) => {
    for (let j = 0; j < d; j++) {
      b[j] += row[j] * y[i] / noise ** 2;
      for (let k = 0; k < d; k++) A[j * d + k] += row[j] * row[k] / noise ** 2;
    }
  });
  return {d, A, b};
}
function factor({d, A}) { // of I + A
  return cholesky(A.map((v, k) => v + (k % (d + 1) === 0)), d, 0);
}
function ridge({d, A, b}) {
  const L = factor({d, A}), z = new Float64Array(d);
  for (let i = 0; i < d; i++) { z[i] = b[i]; for (let p = 0; p < i; p++) z[i] -= L[i * d + p] * z[p]; z[i] /= L[i * d + i]; }
  for (let i = d - 1; i >= 0; i--) { for (let p = i + 1; p < d; p++) z[i] -= L[p * d + i] * z[p]; z[i] /= L[i * d + i]; }
  return z;
}
function meanInformation(s) { // half the log determinant of I + A
  const L = factor(s);
  let sum = 0;
  for (let i = 0; i < s.d; i++) sum += Math.log(L[i * s.d + i]);
  return sum;
}
function exponent({d, A, b}, task) { // of p(task), without what all tasks have in common
  let e = 0;
  for (let j = 0; j < d; j++) {
    let row = 0;
    for (let k = 0; k < d; k++) row += A[j * d + k] * task[k];
    e += task[j] * (b[j] - row / 2);
  }
  return e;
}
function density(s, task) { // log of p(task) over its mean Z
  const best = ridge(s);
  return meanInformation(s) + exponent(s, task) - best.reduce((sum, v, j) => sum + v * s.b[j], 0) / 2;
}
function weigh(s, tasks) { // the weights of a pool, and their mean
  const e = tasks.map(task => exponent(s, task)), top = Math.max(...e), p = e.map(v => Math.exp(v - top)), mass = p.reduce((a, v) => a + v, 0);
  return {weights: p.map(v => v / mass), mean: tasks[0].map((_, j) => tasks.reduce((sum, task, m) => sum + p[m] * task[j], 0) / mass)};
}
const recalled = (iota, size) => 1 / (1 + (size - 1) * Math.exp(-iota)); // the bound on the weight of the prompt's own task

// ---- many prompts, and pools that grow
const SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096], MOST = 4096, PROMPTS = 240;
const vector = (d, {normal}) => Float64Array.from({length: d}, normal);
function draw(d, n, noise, stream) {
  const task = vector(d, stream), x = Array.from({length: n}, () => vector(d, stream));
  return {task, x, y: x.map(row => row.reduce((sum, v, j) => sum + v * task[j], noise * stream.normal()))};
}
/* Squared errors over d, and the own task's weight: for every size a pool that holds the prompt's task, and one of other tasks alone.
   The k-th prompt reads the list of tasks from its own place on, so that small pools differ. */
function grow(s, task, others, from, sizes = SIZES) {
  const {d} = s, best = exponent(s, task), moment = new Float64Array(d), found = {own: [], fresh: [], weight: []};
  let top = -Infinity, mass = 0, m = 0;
  const miss = more => { // of the pool's mean, with `more` times the own task in it
    let sum = 0;
    for (let j = 0; j < d; j++) sum += ((moment[j] + more * task[j]) / (mass + more) - task[j]) ** 2;
    return sum / d;
  };
  const read = size => {
    for (; m < size; m++) {
      const other = others[(from + m) % others.length], e = exponent(s, other);
      if (e > top) { const shrink = Math.exp(top - e); mass *= shrink; for (let j = 0; j < d; j++) moment[j] *= shrink; top = e; }
      const p = Math.exp(e - top);
      mass += p;
      for (let j = 0; j < d; j++) moment[j] += p * other[j];
    }
  };
  for (const size of sizes) {
    read(size - 1);
    const own = size > 1 ? 1 / (1 + mass * Math.exp(top - best)) : 1, more = Math.exp(best - top);
    found.weight.push(own);
    found.own.push(size === 1 || more === Infinity ? 0 : miss(more));
    read(size);
    found.fresh.push(miss(0));
  }
  return found;
}
function average(d, n, noise) {
  const stream = random(0, "prompts of " + d), tasks = random(0, "tasks of " + d), others = Array.from({length: MOST}, () => vector(d, tasks));
  const zero = () => new Float64Array(SIZES.length), mean = {own: zero(), fresh: zero(), weight: zero(), bound: zero(), ridge: 0, information: 0};
  for (let k = 0; k < PROMPTS; k++) {
    const {task, x, y} = draw(d, 32, 1, stream), labels = x.map((row, i) => { // the same inputs and noise at every setting
      const clean = row.reduce((sum, v, j) => sum + v * task[j], 0);
      return clean + noise * (y[i] - clean);
    });
    const s = sums(x.slice(0, n), labels.slice(0, n), noise), found = grow(s, task, others, Math.floor(k * MOST / PROMPTS)), iota = density(s, task);
    for (let i = 0; i < SIZES.length; i++) {
      for (const name of ["own", "fresh", "weight"]) mean[name][i] += found[name][i] / PROMPTS;
      mean.bound[i] += recalled(iota, SIZES[i]) / PROMPTS;
    }
    mean.ridge += ridge(s).reduce((sum, v, j) => sum + (v - task[j]) ** 2, 0) / d / PROMPTS;
    mean.information += meanInformation(s) / PROMPTS;
  }
  return {...mean, others};
}

// ---- the figure
function mount(box, given = {}) {
  const first = {M: 8, noise: 0.5, n: 8, task: "own", d: 2, seed: 0, ...given}, ALL = [1, MOST];
  let kept = {};

  function compute(v) {
    const d = +v.d, key = [d, v.n, v.noise].join();
    if (kept.key !== key) kept = {key, ...average(d, v.n, v.noise)};
    const stream = random(v.seed, "one prompt of " + d), one = draw(d, 32, 1, stream);
    one.task.set([0.9, 0.7].map((c, j) => v.seed ? one.task[j] : c)); // the page's own prompt is the first
    const labels = one.x.map((row, i) => row.reduce((sum, c, j) => sum + c * one.task[j], v.noise * stream.normal()));
    return {...kept, ...v, s: sums(one.x.slice(0, v.n), labels.slice(0, v.n), v.noise), truth: one.task};
  }

  live.figure(box, {
    label: "Live figure: a pool of tasks, its Bayes rule, and ridge regression",
    controls: [
      {name: "M", kind: "range", label: "pool size M", min: 0, max: SIZES.length - 1, step: 1, value: SIZES.indexOf(first.M), show: i => SIZES[i].toLocaleString("en")},
      {name: "noise", kind: "range", label: "label noise σ", min: 0.1, max: 2, step: 0.02, log: true, value: first.noise, show: s => short(+s.toPrecision(2))},
      {name: "n", kind: "range", label: "examples n", min: 1, max: 32, step: 1, value: first.n},
      {name: "task", kind: "choice", label: "the prompt’s task in (c) is", choices: {own: "in the pool", fresh: "fresh"}, value: first.task},
      {name: "d", rest: true, kind: "choice", label: "dimension d", choices: {2: "2", 3: "3", 4: "4"}, value: first.d},
      {name: "seed", rest: true, kind: "range", label: "prompt in (c)", min: 0, max: 20, step: 1, value: first.seed},
    ],
    panels: [
      {caption: 'Squared error over d: the pool’s Bayes rule <b style="color:var(--signal)">on tasks of its pool (thick)</b> and <b style="color:var(--noise)">on fresh tasks (dashes)</b>, <b style="color:var(--ink)">ridge regression (thin)</b> on both.'},
      {caption: 'Weight of the prompt’s own task: <b style="color:var(--signal)">mean (thick)</b>, and <b style="color:var(--soft)">the bound of the proposition (dashes)</b>. Dotted in (a), (b): e<sup>I</sup>.'},
      {caption: 'One prompt: tasks with their weights, <b style="color:var(--noise)">its task ★</b>, <b style="color:var(--ink)">ridge ⬡</b>, <b style="color:var(--test)">the pool’s Bayes rule ×</b>. Beyond d = 2: two coordinates.'},
    ],
    only: ["M"],
    compute,
    draw: (view, now, {M}) => { errors(view, now, M); weight(view, now, M); plane(view, now, M); say(view, now, M); },
  });

  const over = list => SIZES.map((size, i) => [size, list[i]]), limit = now => Math.exp(now.information);
  const marked = (a, now, i) => a.upright(SIZES[i], {colour: "edge", width: 3}) + (limit(now) < MOST ? a.upright(limit(now), {colour: "ink", width: 1.5, dash: "2 3"}) : "");

  function errors(view, now, i) {
    const low = 10 ** Math.floor(Math.log10(now.ridge / 10)), a = axes({x: ALL, y: [low, 10], logx: true, logy: true, xlabel: "tasks in the pool M", ylabel: "error"});
    const clip = list => over(list).map(([size, e]) => [size, Math.max(e, low)]);
    view.svg(0, a.frame() + marked(a, now, i) + a.line(clip(now.fresh), {colour: "noise", width: 2.5, dash: "6 3"}) + a.line(clip(now.own), {colour: "signal", width: 3.5}) +
      a.line([[1, now.ridge], [MOST, now.ridge]], {width: 1.5}),
      `With ${SIZES[i]} tasks the pool's Bayes rule errs ${short(now.own[i])} on them and ${short(now.fresh[i])} on fresh tasks; ridge regression errs ${short(now.ridge)}.`);
  }

  function weight(view, now, i) {
    const a = axes({x: ALL, y: [0, 1.15], logx: true, xlabel: "tasks in the pool M", ylabel: "", yticks: [[0, "0"], [0.5, "½"], [1, "1"]]});
    view.svg(1, a.frame() + marked(a, now, i) + a.line(over(now.bound), {colour: "soft", width: 2, dash: "6 3"}) + a.line(over(now.weight), {colour: "signal", width: 3.5}),
      `In a pool of ${SIZES[i]} the own task has the mean weight ${short(+now.weight[i].toPrecision(2))}; the bound is ${short(+now.bound[i].toPrecision(2))}.`);
  }

  function plane(view, now, i) {
    const wide = 2.2 * live.field.WIDE / live.field.HIGH, ticks = [-2, 0, 2].map(v => [v, short(v)]), a = axes({x: [-wide, wide], y: [-2.2, 2.2], xlabel: "β₁", ylabel: "β₂", xticks: ticks, yticks: ticks});
    const size = SIZES[i], pool = now.others.slice(0, size);
    if (now.task === "own") pool[0] = now.truth;
    const {weights, mean} = weigh(now.s, pool), inside = t => Math.abs(t[0]) < wide && Math.abs(t[1]) < 2.2;
    const disc = (t, r, more) => `<circle cx="${a.px(t[0]).toFixed(1)}" cy="${a.py(t[1]).toFixed(1)}" r="${r.toFixed(1)}" ${more}/>`;
    const dots = pool.slice(0, 600).filter(inside).map(t => disc(t, 1.1, 'fill="var(--soft)"')).join("");
    const discs = pool.map((t, m) => weights[m] > 2e-3 && inside(t) ? disc(t, 17 * Math.sqrt(weights[m]), 'fill="var(--signal)" opacity=".45"') : "").join("");
    const mark = (t, s, colour, size) => a.words(a.px(Math.max(-wide, Math.min(wide, t[0]))), a.py(t[1]) + 0.34 * size, s, `text-anchor="middle" style="fill:var(--${colour});font-size:${size}px"`);
    const fitted = ridge(now.s);
    view.svg(2, a.frame() + dots + discs + mark(now.truth, "★", "noise", 17) + mark(fitted, "⬡", "ink", 17) + mark(mean, "×", "test", 22),
      `A pool of ${size} tasks; the largest weight is ${short(+Math.max(...weights).toPrecision(2))}; the pool's Bayes rule and ridge regression are ${short(+Math.hypot(...mean.map((v, j) => v - fitted[j])).toPrecision(2))} apart.`);
  }

  function say(view, now, i) {
    const two = v => short(+v.toPrecision(2)), w = now.weight[i], met = now.fresh[i] < 1.1 * now.ridge && now.own[i] > now.ridge / 1.1;
    const state = w > 0.5 ? "Tasks are looked up: good on the pool’s own, bad on fresh ones." : met ? "The rule has turned into ridge regression."
      : "In between: too many tasks to tell apart, too few to stand for all.";
    view.say(`A prompt holds I = ${two(now.information)} nats about its task: it can tell e^I ≈ ${two(limit(now))} tasks apart. In a pool of ${SIZES[i].toLocaleString("en")} its own task has ${Math.round(100 * w)} % of the weight on average. ` +
      `Errors: ${now.own[i] < 1e-9 ? "0" : two(now.own[i])} on the pool’s tasks, ${two(now.fresh[i])} on fresh ones; ridge regression ${two(now.ridge)} on both. ${state}`);
  }
}

live.pool = {sums, ridge, meanInformation, density, weigh, recalled, grow, average, SIZES, mount};
})(globalThis.flbookLive);
