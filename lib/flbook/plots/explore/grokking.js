/* A kernel machine that learns its metric on sums modulo p: what grows in it while no test pair is right.

   Formulas: flbook/lectures/representation/grokking/recursive_machine.py and modular_table.py. */
(live => {
"use strict";
const {random, short, axes, cholesky} = live;
const RIDGE = 1e-9, P = 17, ROUNDS = 15;

function drawn(p, share, split, {uniform}) { // [train, test], pairs [a, b], as the library's splits
  const often = Math.round(share * p), mixed = n => Array.from({length: n}, (_, i) => [uniform(), i]).sort((x, y) => x[0] - y[0]).map(x => x[1]);
  if (split === "random") {
    const order = mixed(p * p).map(c => [Math.floor(c / p), c % p]);
    return [order.slice(0, often * p), order.slice(often * p)];
  }
  const half = Math.floor(p / 2), more = split === "uneven" ? Math.min(p - 1 - often, often - 1) : 0, train = [], test = [];
  mixed(p).forEach((group, row) => {
    const count = often + more * (row < half ? 1 : row < 2 * half ? -1 : 0);
    mixed(p).forEach((b, k) => (k < count ? train : test).push([(group + b) % p, b]));
  });
  return [train, test];
}
function histogram(pairs, p) {
  const N = Array(p).fill(0);
  for (const [a, b] of pairs) N[(a - b + p) % p]++;
  return N;
}

// ---- the machine; metrics are q times q by rows, q = 2p
function between(M, q, p, x, y) {
  const a = x[0] * q, b = (p + x[1]) * q, c = y[0], d = p + y[1];
  return M[a + c] + M[a + d] + M[b + c] + M[b + d];
}
function multiply(A, B, q) {
  const C = new Float64Array(q * q);
  for (let i = 0; i < q; i++) for (let k = 0; k < q; k++) { const x = A[i * q + k]; if (x) for (let j = 0; j < q; j++) C[i * q + j] += x * B[k * q + j]; }
  return C;
}
function coefficients(M, pairs, p) { // alpha, n rows of p
  const n = pairs.length, q = 2 * p, K = new Float64Array(n * n);
  let level = 0;
  for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) K[i * n + j] = between(M, q, p, pairs[i], pairs[j]) ** 2;
  for (let i = 0; i < n; i++) level += K[i * n + i] / n;
  for (let i = 0; i < n; i++) K[i * n + i] += RIDGE * level;
  const L = cholesky(K, n, 0), alpha = new Float64Array(n * p);
  pairs.forEach(([a, b], i) => { alpha[i * p + (a + b) % p] = 1; });
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) for (let c = 0, x = L[i * n + k]; c < p; c++) alpha[i * p + c] -= x * alpha[k * p + c];
    for (let c = 0; c < p; c++) alpha[i * p + c] /= L[i * n + i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let c = 0; c < p; c++) alpha[i * p + c] /= L[i * n + i];
    for (let k = 0; k < i; k++) for (let c = 0, x = L[i * n + k]; c < p; c++) alpha[k * p + c] -= x * alpha[i * p + c];
  }
  return alpha;
}
function product(M, alpha, pairs, p) { // a quarter of the gradients' outer product, their mean subtracted
  const n = pairs.length, q = 2 * p, moment = new Float64Array(q * q), mean = new Float64Array(q), inner = new Float64Array(q * q);
  for (const [a, b] of pairs) for (const u of [a, p + b]) { mean[u] += 1 / n; for (const v of [a, p + b]) moment[u * q + v] += 1 / n; }
  for (let u = 0; u < q; u++) for (let v = 0; v < q; v++) moment[u * q + v] -= mean[u] * mean[v];
  const seen = multiply(multiply(M, moment, q), M, q);
  for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) {
    let both = 0;
    for (let c = 0; c < p; c++) both += alpha[i * p + c] * alpha[j * p + c];
    both *= between(seen, q, p, pairs[i], pairs[j]) * (i > j ? 1 : 0.5); // the mirrored half is added below
    const a = pairs[i][0] * q, b = (p + pairs[i][1]) * q, c = pairs[j][0], d = p + pairs[j][1];
    inner[a + c] += both; inner[a + d] += both; inner[b + c] += both; inner[b + d] += both;
  }
  const whole = inner.map((x, k) => x + inner[(k % q) * q + Math.floor(k / q)]);
  return multiply(multiply(M, whole, q), M, q);
}
function root(G, q) { // by Jacobi's rotations, scaled to the mean diagonal 1
  const A = Float64Array.from(G), V = new Float64Array(q * q), M = new Float64Array(q * q);
  for (let i = 0; i < q; i++) V[i * q + i] = 1;
  let size = 0;
  for (let i = 0; i < q; i++) size = Math.max(size, A[i * q + i]);
  for (let sweep = 0, off = 1; sweep < 40 && off > 1e-14; sweep++) {
    off = 0;
    for (let i = 0; i < q; i++) for (let j = i + 1; j < q; j++) {
      const x = A[i * q + j];
      off = Math.max(off, Math.abs(x) / size);
      if (Math.abs(x) < 1e-17 * size) continue;
      const z = (A[j * q + j] - A[i * q + i]) / (2 * x), t = (z < 0 ? -1 : 1) / (Math.abs(z) + Math.sqrt(1 + z * z)), c = 1 / Math.sqrt(1 + t * t), s = c * t;
      for (let k = 0; k < q; k++) { const y = A[k * q + i], w = A[k * q + j]; A[k * q + i] = c * y - s * w; A[k * q + j] = s * y + c * w; }
      for (let k = 0; k < q; k++) { const y = A[i * q + k], w = A[j * q + k]; A[i * q + k] = c * y - s * w; A[j * q + k] = s * y + c * w; }
      for (let k = 0; k < q; k++) { const y = V[k * q + i], w = V[k * q + j]; V[k * q + i] = c * y - s * w; V[k * q + j] = s * y + c * w; }
    }
  }
  for (let k = 0; k < q; k++) {
    const s = Math.sqrt(Math.max(A[k * q + k], 0));
    for (let i = 0; i < q; i++) for (let j = 0; j < q; j++) M[i * q + j] += s * V[i * q + k] * V[j * q + k];
  }
  let level = 0;
  for (let i = 0; i < q; i++) level += M[i * q + i] / q;
  return M.map(x => x / level);
}
function accuracy(M, alpha, train, test, p) {
  let right = 0;
  for (const x of test) {
    const f = new Float64Array(p);
    train.forEach((y, i) => { const k = between(M, 2 * p, p, x, y) ** 2; for (let c = 0; c < p; c++) f[c] += k * alpha[i * p + c]; });
    right += f.indexOf(Math.max(...f)) === (x[0] + x[1]) % p;
  }
  return right / test.length;
}
function profile(M, p) { return Array.from({length: p}, (_, t) => { let sum = 0; for (let u = 0; u < p; u++) sum += M[(p + u) * 2 * p + (u + t) % p]; return sum / p; }); }
function progress(c) { // mean modulus of its waves
  const p = c.length;
  let sum = 0;
  for (let k = 1; k < p; k++) {
    let x = 0, y = 0;
    c.forEach((z, t) => { x += z * Math.cos(2 * Math.PI * k * t / p); y += z * Math.sin(2 * Math.PI * k * t / p); });
    sum += Math.hypot(x, y) / (p - 1);
  }
  return sum;
}
function rounds(train, test, p, count) {
  let M = new Float64Array(4 * p * p);
  for (let i = 0; i < 2 * p; i++) M[i * 2 * p + i] = 1;
  const found = [];
  for (let t = 0; t <= count; t++) {
    const alpha = coefficients(M, train, p), c = profile(M, p);
    found.push({profile: c, R: progress(c), accuracy: accuracy(M, alpha, train, test, p)});
    if (t < count) M = root(product(M, alpha, train, p), 2 * p);
  }
  return found;
}

// ---- the figure
function mount(box, given = {}) {
  const first = {share: 0.8, split: "random", round: 4, seed: 0, ...given};
  live.figure(box, {
    label: "Live figure: a kernel machine learns sums",
    only: ["round"],
    controls: [
      {name: "round", kind: "range", label: "round", min: 0, max: ROUNDS, step: 1, value: first.round},
      {name: "share", kind: "range", label: "share f shown", min: 0.4, max: 0.9, step: 0.05, value: first.share},
      {name: "split", kind: "choice", label: "training set", value: first.split, choices: {random: "random", equal: "equal counts of a − b", uneven: "uneven counts of a − b"}},
      {name: "seed", rest: true, kind: "range", label: "draw", min: 0, max: 20, step: 1, value: first.seed},
    ],
    panels: [
      {caption: '<b style="color:var(--signal)">Profile of C (dots)</b> in this round and <b style="color:var(--soft)">counts of a − b (bars)</b>, both less their mean, over the largest.'},
      {caption: '<b style="color:var(--test)">Test accuracy</b> and <b style="color:var(--signal)">progress R (dashes)</b> over the rounds.'},
    ],
    compute({share, split, seed}) {
      const [train, test] = drawn(P, share, split, random(seed, "table"));
      return {n: train.length, N: histogram(train, P), found: rounds(train, test, P, ROUNDS)};
    },
    draw: (view, now, {round}) => { bars(view, now, round); curves(view, now, round); say(view, now, round); },
  });

  const centred = list => { const mean = list.reduce((s, x) => s + x, 0) / list.length, less = list.map(x => x - mean), top = Math.max(...less.map(Math.abs)); return less.map(x => top > 1e-9 ? x / top : 0); };
  function bars(view, {N, found}, round) {
    const a = axes({x: [-0.7, P - 0.3], y: [-1.15, 1.15], xlabel: "difference a − b", xticks: [[0, "0"], [4, "4"], [8, "8"], [12, "12"], [16, "16"]]});
    const c = centred(found[round].profile), h = centred(N), zero = a.py(0);
    const bar = h.map((y, t) => `<rect x="${(a.px(t - 0.35)).toFixed(1)}" y="${Math.min(a.py(y), zero).toFixed(1)}" width="${(a.px(0.7) - a.px(0)).toFixed(1)}" height="${Math.abs(a.py(y) - zero).toFixed(1)}" fill="var(--soft)" opacity=".45"/>`).join("");
    const dots = c.map((y, t) => `<circle cx="${a.px(t).toFixed(1)}" cy="${a.py(y).toFixed(1)}" r="3.4" fill="var(--signal)"/>`).join("");
    view.svg(0, a.frame() + bar + dots, `Profile of C in round ${round} beside the counts of a minus b, from ${Math.min(...N)} to ${Math.max(...N)}.`);
  }
  function curves(view, {found}, round) {
    const a = axes({x: [0, ROUNDS], y: [0, 1.04], xlabel: "round"});
    view.svg(1, a.frame() + a.upright(round) + a.line(found.map((f, t) => [t, f.R]), {colour: "signal", width: 2.5, dash: "6 3"}) + a.line(found.map((f, t) => [t, f.accuracy]), {colour: "test", width: 3}),
      `Test accuracy from 0 to ${short(found[ROUNDS].accuracy)} and progress from 0 to ${short(found[ROUNDS].R)} over ${ROUNDS} rounds.`);
  }
  function say(view, {n, found}, round) {
    const now = found[round], jump = found.findIndex(f => f.accuracy >= 0.5), start = `${n} of ${P * P} sums modulo ${P} are shown. In round ${round} R is ${short(now.R)} and ${short(100 * now.accuracy)} % of the others are right. `;
    view.say(start + (jump < 0 ? "The accuracy does not reach one half in these rounds." : `The accuracy passes one half in round ${jump}.`));
  }
}

live.grokking = {drawn, histogram, coefficients, product, root, accuracy, profile, progress, rounds, mount};
})(globalThis.flbookLive);
