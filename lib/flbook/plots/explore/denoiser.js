/* A denoiser and a classifier on the same patches: what each sees of signal and noise while it is trained, by gradient descent.

   Both in their smallest form, all neurons alike: the denoiser in the three numbers of its stationary point, the classifier in a filter's
   response to a signal and to a noise patch. Formulas: flbook/lectures/foundation_models/diffusion/noise_prediction.py; orthogonal patches. */
(live => {
"use strict";
const {short, axes} = live;

const noising = t => [Math.exp(-t), Math.sqrt(-Math.expm1(-2 * t))];

/* Derivatives of the expected loss by the response s to both signals, q to all noise patches, and by v, the length of what a neuron has
   orthogonal to the data; x = n SNR^2. */
function slopes([s, q, v], {mu, x, m, alpha, beta}) {
  const D = (2 * s * s + x * q * q) / mu ** 2, g = D + v * v, h = D - v * v / (m - 1), a2 = alpha ** 2, b2 = beta ** 2;
  let byG = 0, byH = 0;
  const by = [s, q].map(z => {
    const E = a2 * z * z + b2 * g, cross = 4 * a2 * b2 * z * z, others = (m - 1) * h;
    byG += -4 * alpha * beta * Math.sqrt(m) * z + E * E + 2 * cross * g + 6 * b2 * b2 * g * g + 2 * b2 * E * (g + others);
    byH += (m - 1) * (E * E + 2 * cross * h + 6 * b2 * b2 * h * h);
    return -4 * alpha * beta * Math.sqrt(m) * g + 4 * a2 * z * ((g + others) * E + 2 * b2 * (g * g + (m - 1) * h * h));
  });
  return [by[0] + (byG + byH) * 4 * s / mu ** 2, by[1] + (byG + byH) * 2 * x * q / mu ** 2, 2 * v * (byG - byH / (m - 1))];
}

const D_ = 1000, STEPS = 3000, SIGMA_0 = {denoiser: 0.02, classifier: 0.001}; // dimension, steps of gradient descent, initial weights
const complete = ({n, mu, m, t}) => { const [alpha, beta] = noising(t); return {n, mu, m, alpha, beta, x: n * mu ** 2 / D_}; };
const stepOf = ({mu, x, alpha, beta}) => 0.5 / (beta ** (4 / 3) * Math.max((alpha * mu / beta) ** 2 * Math.max(0.5, 1 / x), 6)); // as in the lecture

function denoise(s, at, lr = stepOf(s), start = [0, 0, SIGMA_0.denoiser * Math.sqrt(D_)]) { // rows of signal and noise at the steps `at`, the last of which ends it
  const pace = [s.mu ** 2 / 2, s.mu ** 2 / s.x, 1].map(length => lr * length / s.m), rows = [];
  let now = start;
  for (let t = 0, j = 0; ; t++) {
    if (t === at[j]) { rows.push({step: t, signal: now[0], noise: now[1], own: now[2] ** 2}); if (++j === at.length) return rows; }
    const by = slopes(now, s);
    now = now.map((z, k) => z - pace[k] * by[k]);
  }
}
/* Filters of the own class see a of its signal and b of a noise patch, those of the other class A and B; squares, logistic loss. */
function classify({mu, x, m}, at, lr = 0.5 * Math.min(1, (15 / mu) ** 2), [a, b] = [mu, Math.sqrt(D_)].map(length => SIGMA_0.classifier * length)) {
  const rows = [], S = mu ** 2 / x; // squared length of a noise patch over n
  let A = a, B = b;
  for (let t = 0, j = 0; ; t++) {
    if (t === at[j]) { rows.push({step: t, signal: a, noise: b}); if (++j === at.length) return rows; }
    const pull = 2 * lr / m / (1 + Math.exp(a * a + b * b - A * A - B * B));
    a += pull * mu ** 2 / 2 * a; A -= pull * mu ** 2 / 2 * A; b += pull * S * b; B -= pull * S * B;
  }
}

// ---- the figure
const M = [1, 50], AT = [...new Set([0, ...Array.from({length: 90}, (_, i) => Math.round(STEPS ** (i / 89)))])], ratio = row => row.signal / row.noise;
function mount(box, given = {}) {
  const first = {mu: 5, t: 0.2, n: 30, m: 20, ...given};
  const strengths = Array.from({length: 26}, (_, i) => M[0] * (M[1] / M[0]) ** (i / 25));
  let kept = {};

  function compute(s) {
    const now = complete({...s, n: 2 * Math.round(s.n / 2), m: Math.round(s.m)}), key = [now.n, now.m, s.t].join();
    if (kept.key !== key) kept = {key, ends: strengths.map(mu => complete({...now, t: s.t, mu})).map(one => [one.x, ratio(denoise(one, [STEPS])[0]), ratio(classify(one, [STEPS])[0])])};
    return {...now, denoiser: denoise(now, AT), classifier: classify(now, AT), ends: kept.ends};
  }

  const view = live.figure(box, {
    label: "Live figure: a denoiser and a classifier, and what they see of signal and noise",
    controls: [
      {name: "mu", kind: "range", label: "signal |μ|", min: M[0], max: M[1], step: 0.02, log: true, value: first.mu, show: mu => short(+mu.toPrecision(2))},
      {name: "t", kind: "range", label: "diffusion time t", min: 0.05, max: 2, step: 0.05, log: true, value: first.t, show: t => short(+t.toPrecision(2))},
      {name: "n", rest: true, kind: "range", label: "samples n", min: 10, max: 200, step: 2, value: first.n},
      {name: "m", rest: true, kind: "range", label: "neurons m", min: 2, max: 60, step: 1, value: first.m},
    ],
    panels: [
      {caption: 'Denoiser: response to <b style="color:var(--signal)">a signal (thick)</b> and to <b style="color:var(--noise)">a noise patch (dashes)</b> over training. From zero both grow like the step.'},
      {caption: 'Classifier on the same patches, undiffused: the same two. Each grows in proportion to itself, until the labels are fitted.'},
      {caption: 'Signal over noise at the end: <b style="color:var(--network)">denoiser (thick)</b>, <b style="color:var(--kernel)">classifier (dashes)</b>. Dotted: n SNR²/2, and 1. Ring: the present two.'},
    ],
    compute,
    draw: (v, now) => { path(v, 0, now.denoiser, "denoiser"); path(v, 1, now.classifier, "classifier"); ends(v, now); say(v, now); },
  });

  function path(v, panel, rows, name) {
    const low = 1e-3, a = axes({x: [1, STEPS], y: [low, 10], logx: true, logy: true, xlabel: "training step", ylabel: "response"}), last = rows[rows.length - 1];
    const curve = what => rows.filter(q => q.step && q[what] > low).map(q => [q.step, q[what]]);
    v.svg(panel, a.frame() + a.line(curve("noise"), {colour: "noise", width: 2.5, dash: "6 3"}) + a.line(curve("signal"), {colour: "signal", width: 3.5}),
      `At the end the ${name} responds to a signal by ${short(last.signal)} and to a noise patch by ${short(last.noise)}.`);
  }

  function ends(v, {ends, x, denoiser, classifier}) {
    const Y = [1e-3, 1e3], a = axes({x: [ends[0][0], ends[ends.length - 1][0]], y: Y, logx: true, logy: true, xlabel: "n SNR²", ylabel: "ratio"}), inside = y => Math.min(Math.max(y, Y[0]), Y[1]);
    const curve = k => ends.map(row => [row[0], row[k]]).filter(([, y]) => y > Y[0] && y < Y[1]);
    const ring = (rows, colour) => `<circle cx="${a.px(x).toFixed(1)}" cy="${a.py(inside(ratio(rows[rows.length - 1]))).toFixed(1)}" r="6" fill="var(--${colour})" stroke="var(--ink)" stroke-width="2"/>`;
    v.svg(2, a.frame() + a.line([[ends[0][0], 1], [ends[ends.length - 1][0], 1]], {colour: "soft", width: 1.5, dash: "2 3"}) + a.line(ends.map(([z]) => [z, z / 2]), {colour: "soft", width: 1.5, dash: "2 3"}) +
      a.line(curve(2), {colour: "kernel", width: 2.5, dash: "6 3"}) + a.line(curve(1), {colour: "network", width: 3.5}) + ring(classifier, "kernel") + ring(denoiser, "network"),
      `Signal over noise against n SNR squared. At ${short(x)}: denoiser ${short(ratio(denoiser[denoiser.length - 1]))}, classifier ${short(ratio(classifier[classifier.length - 1]))}.`);
  }

  function say(v, {x, denoiser, classifier}) {
    const [one, two] = [denoiser, classifier].map(rows => ratio(rows[rows.length - 1])), first = ratio(denoiser[1]);
    v.say(`n SNR² = ${short(+x.toPrecision(2))}. The denoiser’s responses begin in the ratio ${short(+first.toPrecision(2))} (n SNR²/2) and end at ${short(+one.toPrecision(2))}. The classifier ends at ${short(+two.toPrecision(2))}: ` +
      (two > 2 ? "it sees the signal." : two < 0.5 ? "it sees the noise." : "neither wins."));
  }
  return view;
}

live.denoiser = {complete, stepOf, slopes, denoise, classify, mount};
})(globalThis.flbookLive);
