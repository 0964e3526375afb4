/* A linear task that drifts while a prompt is read: what a memory of labels, a memory of residuals and the Kalman filter make of it.

   Risks of the first two are exact, by the recursion of their error's two moments; that of the filter is a mean over prompts.
   Formulas: flbook/lectures/in_context_learning/delta_rules/error_moments.py and kalman_filter.py. */
(live => {
"use strict";
const {random, short, axes} = live;

/* The error of the prediction, u = keep b - beta: its mean square e and its inner product c with the task, per coordinate. */
function start() { return {e: 1, c: -1}; }
function after({e, c}, residual, {d, step, keep, memory, noise}) {
  const square = step ** 2 * (d + 2), scatter = step ** 2 * noise ** 2, off = keep - memory, moved = 1 - memory ** 2;
  const [written, along] = residual ? [(1 - 2 * step + square) * e + scatter, (1 - step) * c] : [e + 2 * step * c + square + scatter, c + step];
  return {e: keep ** 2 * written + 2 * keep * off * along + off ** 2 + moved, c: memory * keep * along + memory * off - moved};
}
function risks(n, residual, s) { // before the first example, after it, and so on
  const found = [s.d];
  for (let l = 0, now = start(); l < n; l++) { now = after(now, residual, s); found.push(s.d * now.e); }
  return found;
}
function bestStep(n, s) { // for labels: the risk is quadratic in the step
  const at = step => { let now = start(); for (let l = 0; l < n; l++) now = after(now, false, {...s, step}); return now.e; };
  const [low, middle, high] = [-1, 0, 1].map(at);
  return (low - high) / (4 * ((low + high) / 2 - middle));
}

// ---- prompts: the task at every moment, inputs and labels
function prompt(n, {d, memory, noise}, {normal}) {
  const draw = () => Array.from({length: d}, normal), tasks = [draw()], x = [], y = [], move = Math.sqrt(Math.max(1 - memory ** 2, 0));
  for (let l = 0; l < n; l++) {
    x.push(draw());
    y.push(x[l].reduce((sum, v, j) => sum + v * tasks[l][j], noise * normal()));
    tasks.push(tasks[l].map(v => memory * v + move * normal()));
  }
  return {tasks, x, y};
}
function remember(x, y, residual, {step, keep}) { // what a memory predicts for the task, before each example and at the end
  let b = x[0].map(() => 0);
  const path = [b];
  for (let l = 0; l < y.length; l++) {
    const error = y[l] - (residual ? b.reduce((sum, v, j) => sum + v * x[l][j], 0) : 0);
    b = b.map((v, j) => keep * (v + step * error * x[l][j]));
    path.push(b);
  }
  return path;
}
function kalman(x, y, {memory, noise}) {
  const d = x[0].length;
  let b = x[0].map(() => 0), P = x[0].map((_, i) => x[0].map((_, j) => +(i === j)));
  const path = [b], trace = [d]; // the mean of the task, and the sum of its variances
  for (let l = 0; l < y.length; l++) {
    const along = P.map(row => row.reduce((sum, v, j) => sum + v * x[l][j], 0)), own = along.reduce((sum, v, j) => sum + v * x[l][j], noise ** 2);
    const gain = along.map(v => own > 1e-9 ? v / own : 0), error = y[l] - b.reduce((sum, v, j) => sum + v * x[l][j], 0); // exact labels: nothing is left to learn
    b = b.map((v, j) => memory * (v + error * gain[j]));
    P = P.map((row, i) => row.map((v, j) => memory ** 2 * (v - gain[i] * along[j]) + (i === j ? 1 - memory ** 2 : 0)));
    path.push(b);
    trace.push(P.reduce((sum, row, i) => sum + row[i], 0));
  }
  return {path, trace};
}
function filterRisk(n, s, prompts = 100) { // over the inputs of its own prompts, the same for every setting
  const sums = new Float64Array(n + 1), stream = random(0, "prompts that drift");
  for (let k = 0; k < prompts; k++) {
    const one = prompt(n, s, stream);
    kalman(one.x, one.y, s).trace.forEach((v, l) => { sums[l] += v / prompts; });
  }
  return [...sums];
}

// ---- the figure
const N = 100;
function mount(box, given = {}) {
  const first = {noise: 0.5, drift: 0.02, step: 0.14, forget: 0.02, d: 4, seed: 0, ...given};
  let kept = {};

  function compute(v) {
    const s = {d: v.d, noise: v.noise, memory: 1 - v.drift, step: v.step, keep: 1 - v.forget}, key = [s.d, s.noise, s.memory].join();
    if (kept.key !== key) kept = {key, filter: filterRisk(N, s)};
    const labels = {...s, step: bestStep(N, s)}, one = prompt(N, s, random(v.seed, "one prompt"));
    return {s, filter: kept.filter, attention: risks(N, false, labels), delta: risks(N, true, s), tasks: one.tasks,
      paths: {filter: kalman(one.x, one.y, s).path, attention: remember(one.x, one.y, false, labels), delta: remember(one.x, one.y, true, s)}};
  }

  const share = v => `${short(+(100 * v).toPrecision(2))} %`;
  live.figure(box, {
    label: "Live figure: a task that drifts, and three rules that follow it",
    controls: [
      {name: "noise", kind: "range", label: "label noise σ", min: 0, max: 2, step: 0.05, value: first.noise},
      {name: "drift", kind: "range", label: "drift 1 − ρ", min: 0, max: 0.1, step: 0.005, value: first.drift, show: share},
      {name: "step", kind: "range", label: "step η, delta rule", min: 0.01, max: 0.3, step: 0.005, value: first.step},
      {name: "forget", kind: "range", label: "forgetting 1 − α", min: 0, max: 0.2, step: 0.005, value: first.forget, show: share},
      {name: "d", rest: true, kind: "range", label: "dimension d", min: 2, max: 8, step: 1, value: first.d},
      {name: "seed", rest: true, kind: "range", label: "prompt in (b)", min: 0, max: 20, step: 1, value: first.seed},
    ],
    panels: [
      {caption: 'Risk over the examples read: <b style="color:var(--linear)">linear attention (dashes)</b> with this forgetting and the step that is best after 100, <b style="color:var(--signal)">the delta rule (thick)</b>, <b style="color:var(--ink)">the Kalman filter (thin)</b>. Dotted: predicting 0.'},
      {caption: 'One prompt: a coordinate of <b style="color:var(--soft)">the task (dots)</b>, and what the three take it for.'},
    ],
    compute,
    draw: (view, now) => { risk(view, now); path(view, now); say(view, now); },
  });

  function risk(view, {s, filter, attention, delta}) {
    const low = 10 ** Math.min(Math.max(Math.floor(Math.log10(Math.min(delta[N], Math.max(filter[N], 1e-6)))), -6), -1);
    const a = axes({x: [0, N], y: [low, 10], logy: true, xlabel: "examples read", ylabel: "risk"}), clip = curve => curve.map((y, l) => [l, Math.min(Math.max(y, low), 10)]);
    view.svg(0, a.frame() + a.line([[0, s.d], [N, s.d]], {colour: "soft", width: 1.5, dash: "2 3"}) + a.line(clip(attention), {colour: "linear", width: 2.5, dash: "6 3"}) +
      a.line(clip(delta), {colour: "signal", width: 3.5}) + a.line(clip(filter), {colour: "ink", width: 1.5}),
      `Risk after ${N} examples: linear attention ${short(attention[N])}, delta rule ${short(delta[N])}, Kalman filter ${short(filter[N])}.`);
  }

  function path(view, {tasks, paths}) {
    const a = axes({x: [0, N], y: [-3, 3], xlabel: "examples read", ylabel: "first coordinate"}), curve = list => list.map((b, l) => [l, Math.min(Math.max(b[0], -3), 3)]);
    view.svg(1, a.frame() + a.line(curve(paths.attention), {colour: "linear", width: 2, dash: "6 3"}) + a.line(curve(paths.delta), {colour: "signal", width: 2.5}) +
      a.line(curve(paths.filter), {colour: "ink", width: 1.5}) + a.line(curve(tasks), {colour: "soft", width: 2.5, dash: "2 2.5"}),
      `The first coordinate of the task over ${N} examples, and three estimates of it.`);
  }

  function say(view, {filter, attention, delta}) {
    const [one, two, three] = [attention, delta, filter].map(curve => curve[N]), text = y => y < 1e-9 ? "0" : short(+y.toPrecision(2));
    view.say(`After ${N} examples the risk is ${text(one)} for linear attention, ${text(two)} for the delta rule and ${text(three)} for the Kalman filter, the best rule. ` +
      (two > one ? "Here the labels win: the step is too large for this noise." : one > 2 * two ? "Writing residuals pays." : "Labels and residuals are nearly alike."));
  }
}

live.drift = {risks, bestStep, remember, kalman, filterRisk, mount};
})(globalThis.flbookLive);
