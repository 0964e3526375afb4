/* One gradient step: a two-layer network of erf neurons on a single-index target, trained in the reader's browser.

   Data, network, step and ridge regression are those of flbook/lectures/representation/kernels_and_one_step, the theory is that of
   flbook/theory/one_step.py, where the derivations stand. Matrices are flat, row by row. beta* is the first coordinate vector. */
(live => {
"use strict";
const {random, short, axes} = live;

// ---- linear algebra
/* A B' for A (rows, k) and B (columns, k); of a symmetric product the lower half is computed and mirrored. Blocks of 2 x 4 sums are
   twice as fast as one at a time; at the rim a block computes its last line again. */
function products(A, B, rows, columns, k, symmetric = false) {
  const C = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i += 2) {
    const i1 = Math.min(i + 1, rows - 1), a = i * k, b = i1 * k, end = symmetric ? i1 + 1 : columns;
    for (let j = 0; j < end; j += 4) {
      const j1 = Math.min(j + 1, columns - 1), j2 = Math.min(j + 2, columns - 1), j3 = Math.min(j + 3, columns - 1);
      const p = j * k, q = j1 * k, r = j2 * k, s = j3 * k;
      let c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
      for (let t = 0; t < k; t++) {
        const x = A[a + t], y = A[b + t], B0 = B[p + t], B1 = B[q + t], B2 = B[r + t], B3 = B[s + t];
        c0 += x * B0; c1 += x * B1; c2 += x * B2; c3 += x * B3;
        d0 += y * B0; d1 += y * B1; d2 += y * B2; d3 += y * B3;
      }
      const u = i * columns, v = i1 * columns;
      C[u + j] = c0; C[u + j1] = c1; C[u + j2] = c2; C[u + j3] = c3;
      C[v + j] = d0; C[v + j1] = d1; C[v + j2] = d2; C[v + j3] = d3;
    }
  }
  if (symmetric) for (let i = 0; i < rows; i++) for (let j = 0; j < i; j++) C[j * columns + i] = C[i * columns + j];
  return C;
}
function transpose(A, rows, columns) {
  const T = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) T[j * rows + i] = A[i * columns + j];
  return T;
}
const dot = (a, b) => { let s = 0; for (let i = 0; i < a.length; i++) s += a[i] * b[i]; return s; };

/* Symmetric A = Q T Q' with T tridiagonal, by Householder reflections 1 - 2 v v'. None of them touches the first coordinate: Q e_1 = e_1.
   Only the lower half of A is read. */
function tridiagonal(symmetric, size) {
  const A = Float64Array.from(symmetric), diagonal = new Float64Array(size), off = new Float64Array(size), mirrors = [], w = new Float64Array(size);
  for (let k = 0; k < size; k++) {
    diagonal[k] = A[k * size + k];
    if (k === size - 1) break;
    const v = new Float64Array(size);
    let rest = 0;
    for (let i = k + 1; i < size; i++) { v[i] = A[i * size + k]; if (i > k + 1) rest += v[i] ** 2; }
    if (rest === 0) { off[k] = v[k + 1]; mirrors.push(null); continue; }
    const length = Math.sqrt(rest + v[k + 1] ** 2);
    off[k] = v[k + 1] > 0 ? -length : length;
    v[k + 1] -= off[k];
    const scale = 1 / Math.sqrt(rest + v[k + 1] ** 2);
    for (let i = k + 1; i < size; i++) { v[i] *= scale; w[i] = 0; }
    for (let i = k + 1; i < size; i++) { // w = A v
      const at = i * size, vi = v[i];
      let s = A[at + i] * vi;
      for (let j = k + 1; j < i; j++) { s += A[at + j] * v[j]; w[j] += A[at + j] * vi; }
      w[i] += s;
    }
    let along = 0;
    for (let i = k + 1; i < size; i++) along += v[i] * w[i];
    for (let i = k + 1; i < size; i++) w[i] = 2 * (w[i] - along * v[i]);
    for (let i = k + 1; i < size; i++) {
      const at = i * size, vi = v[i], wi = w[i];
      for (let j = k + 1; j <= i; j++) A[at + j] -= vi * w[j] + wi * v[j];
    }
    mirrors.push(v);
  }
  return {diagonal, off, mirrors};
}
function mirrored(mirrors, x, backwards) { // Q'x, or Qx
  const y = Float64Array.from(x);
  for (const v of backwards ? [...mirrors].reverse() : mirrors) if (v) {
    const s = 2 * dot(v, y);
    for (let i = 0; i < y.length; i++) y[i] -= s * v[i];
  }
  return y;
}

/* Eigenvalues of a symmetric matrix, ascending, and the squared first coordinates of their eigenvectors: QR steps with Wilkinson's shift
   on the tridiagonal form. Of the eigenvectors one row is carried along, so this costs little more than the reduction. */
function spectrum(symmetric, size) {
  const {diagonal: d, off: e} = tridiagonal(symmetric, size), first = new Float64Array(size);
  first[0] = 1;
  let norm = 0;
  for (let i = 0; i < size; i++) norm = Math.max(norm, Math.abs(d[i]) + 2 * Math.abs(e[i]));
  const small = i => Math.abs(e[i]) <= 1e-16 * norm;
  for (let q = size - 1, steps = 0; q > 0 && steps < 60 * size; steps++) {
    if (small(q - 1)) { e[--q] = 0; continue; }
    let p = q - 1;
    while (p > 0 && !small(p - 1)) p--;
    const half = (d[q - 1] - d[q]) / 2, root = Math.hypot(half, e[q - 1]);
    let x = d[p] - (d[q] - e[q - 1] ** 2 / (half + (half < 0 ? -root : root))), z = e[p];
    for (let k = p; k < q; k++) {
      const r = Math.hypot(x, z), c = r ? x / r : 1, s = r ? z / r : 0, gap = d[k + 1] - d[k], b = e[k], u = first[k], v = first[k + 1];
      if (k > p) e[k - 1] = r;
      const shift = s * (2 * c * b + s * gap);
      d[k] += shift; d[k + 1] -= shift;
      e[k] = c * s * gap + (c - s) * (c + s) * b;
      first[k] = c * u + s * v; first[k + 1] = c * v - s * u;
      x = e[k];
      if (k + 1 < q) { z = s * e[k + 1]; e[k + 1] *= c; }
    }
  }
  const order = Array.from(d.keys()).sort((i, j) => d[i] - d[j]);
  return {values: Float64Array.from(order, i => d[i]), overlaps: Float64Array.from(order, i => first[i] ** 2)};
}

// ---- the error function from a table: cubic between nodes 1/256 apart, right to 4e-12
const slope = z => 2 / Math.sqrt(Math.PI) * Math.exp(-z * z), FINE = 256, END = 6, TABLE = new Float64Array(FINE * END + 2), SLOPES = TABLE.map((_, i) => slope(i / FINE) / FINE);
for (let i = 0; i < TABLE.length; i++) {
  const x = i / FINE; // a series of positive terms: x 2^k x^2k / (1 3 5 .. (2k + 1))
  let term = x, sum = 0;
  for (let k = 1; term > 1e-18 * sum; k++) { sum += term; term *= 2 * x * x / (2 * k + 1); }
  TABLE[i] = slope(x) * sum;
}
function erf(z) {
  const x = Math.abs(z) * FINE, i = x | 0;
  if (!(x < FINE * END)) return z > 0 ? 1 : z < 0 ? -1 : z;
  const t = x - i, a = TABLE[i], rise = TABLE[i + 1] - a, p = SLOPES[i], q = SLOPES[i + 1];
  const y = a + t * (p + t * (3 * rise - 2 * p - q + t * (p + q - 2 * rise)));
  return z < 0 ? -y : y;
}

// ---- theory: flbook/theory/one_step.py
const LINKS = {erf, tanh: Math.tanh, even: z => (z * z - 1) / Math.SQRT2};
/* The mean over a standard normal number, by the trapezoidal rule: for smooth functions exact to rounding. */
const NODES = Float64Array.from({length: 401}, (_, i) => (i - 200) / 20), WEIGHTS = NODES.map(z => Math.exp(-z * z / 2) / 20 / Math.sqrt(2 * Math.PI));
const mean = f => dot(WEIGHTS, NODES.map(f));
function parts(f) { // constant, linear part, norm of the rest, mean square
  const mu_0 = mean(f), mu_1 = mean(z => z * f(z)), mu_2 = Math.sqrt(mean(z => (f(z) - mu_0 - mu_1 * z) ** 2));
  return {mu_0, mu_1, mu_2, square: mu_0 ** 2 + mu_1 ** 2 + mu_2 ** 2};
}
function spikeStrength(eta, psi_1, sigma, target, noise) {
  const noisy = target.mu_1 ** 2 + (target.square + noise ** 2) / psi_1;
  return {t: eta * Math.abs(sigma.mu_1) * Math.sqrt(noisy), share: target.mu_1 ** 2 / noisy};
}
function spike(eta, psi_1, psi_2, sigma, target, noise) {
  const {t, share} = spikeStrength(eta, psi_1, sigma, target, noise), square = Math.max(t, psi_2 ** 0.25) ** 2;
  return {singularValue: Math.sqrt((1 + square) * (psi_2 + square) / square),
    overlap: t > psi_2 ** 0.25 ? share * (1 - (psi_2 + square) / (square * (square + 1))) : 0};
}
const spikeThreshold = (psi_1, psi_2, sigma, target, noise) => psi_2 ** 0.25 / spikeStrength(1, psi_1, sigma, target, noise).t;
function bulkDensity(s, psi_2) {
  const low = Math.sqrt(psi_2) - 1, high = Math.sqrt(psi_2) + 1;
  return Math.sqrt(Math.max((high * high - s * s) * (s * s - low * low), 0)) / (Math.PI * Math.max(s, 1e-300));
}
function ridgeRisk(ridge, n, s, weights, count, rest, noise) { // deterministic equivalent; eigenvalue s_k of the covariance counts count_k times
  const total = f => { let sum = 0; for (let k = 0; k < s.length; k++) sum += f(k); return sum; };
  let kappa = ridge + total(k => count[k] * s[k]) / n;
  const share = k => s[k] / (s[k] + kappa);
  for (let i = 0; i < 60; i++) { // Newton's method on a convex function, from above
    const excess = kappa * (1 - total(k => count[k] * share(k)) / n) - ridge;
    kappa -= excess / (1 - total(k => count[k] * share(k) ** 2) / n);
  }
  const bias = total(k => weights[k] * s[k] * (1 - share(k)) ** 2);
  return (rest + noise ** 2 + bias) / (1 - total(k => count[k] * share(k) ** 2) / n) - noise ** 2;
}
function gaussianEquivalentRisk(lam, n, width, squares, overlaps, sigma, target, noise) {
  const d = squares.length, values = [], weights = [], count = [];
  let rest = target.mu_1 ** 2 + target.mu_2 ** 2;
  for (let k = 0; k < d; k++) {
    const value = (sigma.mu_1 ** 2 * squares[k] + sigma.mu_2 ** 2) / width, explained = sigma.mu_1 ** 2 * target.mu_1 ** 2 / width * squares[k] * overlaps[k] / value;
    rest -= explained;
    values.push(value); weights.push(explained / value); count.push(1);
  }
  values.push(sigma.mu_2 ** 2 / width); weights.push(0); count.push(width - d);
  return lam.map(l => ridgeRisk(l / width, n, values, weights, count, rest, noise));
}

// ---- one step, and ridge regression on what it leaves
function normals(count, seed, role, scale = 1) {
  const {normal} = random(seed, role), x = new Float64Array(count);
  for (let i = 0; i < count; i++) x[i] = scale * normal();
  return x;
}
function drawSample({n, d, noise}, seed, role, link) {
  const x = normals(n * d, seed, `${role} inputs`), y = normals(n, seed, `${role} label noise`, noise);
  for (let i = 0; i < n; i++) y[i] += link(x[i * d]);
  return {x, y};
}
const drawNetwork = ({d, width}, seed) => ({w: normals(width * d, seed, "weights", 1 / Math.sqrt(d)), a: normals(width, seed, "second layer", 1 / Math.sqrt(width))});

/* The step per unit of eta, -sqrt(N) times the gradient of the mean of (f(x) - y)^2 / 2 in the first layer. */
function direction({x, y}, {w, a}, {n, d, width}) {
  const z = products(w, x, width, n, d), residual = y.map(label => -label);
  for (let k = 0; k < width; k++) for (let i = 0, at = k * n; i < n; i++) residual[i] += a[k] / Math.sqrt(width) * erf(z[at + i]);
  for (let k = 0; k < width; k++) for (let i = 0, at = k * n; i < n; i++) z[at + i] = -residual[i] * slope(z[at + i]) * a[k] / n;
  return products(z, transpose(x, n, d), width, d, n);
}
const moved = (w, step, eta) => w.map((start, at) => start + eta * step[at]);

/* Spectrum of W'W for every eta: the square of W_0 + eta D is a parabola in eta. */
function spectra(w, step, {d, width}) {
  const W = transpose(w, width, d), D = transpose(step, width, d), gram = (A, B) => products(A, B, d, d, width), start = gram(W, W), cross = gram(W, D), square = gram(D, D);
  return eta => {
    const sum = new Float64Array(d * d);
    for (let i = 0; i < d; i++) for (let j = 0; j <= i; j++) sum[i * d + j] = start[i * d + j] + eta * (cross[i * d + j] + cross[j * d + i]) + eta * eta * square[i * d + j];
    const {values, overlaps} = spectrum(sum, d);
    return {squares: values.map(v => Math.max(v, 0)), overlaps};
  };
}
/* Second layers that minimise the mean square error plus lam/N |a|^2 on features N^{-1/2} erf(<w, x>): one tridiagonal form serves every lam. */
function ridge(w, {x, y}, {n, d, width}, lam) {
  const features = products(w, x, width, n, d).map(z => erf(z) / Math.sqrt(width * n)), {diagonal, off, mirrors} = tridiagonal(products(features, features, width, width, n, true), width);
  const correlation = Float64Array.from({length: width}, (_, k) => { let s = 0; for (let i = 0; i < n; i++) s += features[k * n + i] * y[i]; return s / Math.sqrt(n); });
  const turned = mirrored(mirrors, correlation);
  return lam.map(l => {
    const pivot = diagonal.map(v => v + l / width), z = turned.slice();
    for (let k = 1; k < width; k++) { const m = off[k - 1] / pivot[k - 1]; pivot[k] -= m * off[k - 1]; z[k] -= m * z[k - 1]; }
    for (let k = width - 1; k >= 0; k--) z[k] = (z[k] - (k + 1 < width ? off[k] * z[k + 1] : 0)) / pivot[k];
    return mirrored(mirrors, z, true);
  });
}
/* The prediction at index <x, beta*> = xi averaged over the other directions: the mean of erf(k xi + s g) over a standard normal g
   is erf(k xi / sqrt(1 + 2 s^2)); k is a neuron's first weight, s the length of the others. These are its slopes k / sqrt(1 + 2 s^2). */
function slopes(w, {d, width}) {
  return Float64Array.from({length: width}, (_, k) => {
    let rest = 0;
    for (let j = 1; j < d; j++) rest += w[k * d + j] ** 2;
    return w[k * d] / Math.sqrt(1 + 2 * rest);
  });
}
const profile = (slopes, a) => xi => dot(a, slopes.map(k => erf(k * xi))) / Math.sqrt(a.length);
/* Exact risk E(f - f*)^2 of each second layer: the mean of f^2 by arcsines (kernels.arcsine), that of f f* by one integral a neuron. */
function risks(w, layers, link, {d, width}) {
  const K = products(w, w, width, width, d, true), scale = Float64Array.from({length: width}, (_, k) => 1 / Math.sqrt(1 + 2 * K[k * width + k]));
  for (let i = 0; i < width; i++) for (let j = 0; j <= i; j++) K[i * width + j] = (i === j ? 2 : 4) / Math.PI * Math.asin(2 * K[i * width + j] * scale[i] * scale[j]) / width;
  const target = NODES.map((z, i) => WEIGHTS[i] * link(z)), own = mean(z => link(z) ** 2);
  const both = slopes(w, {d, width}).map(k => { let s = 0; for (let i = 0; i < NODES.length; i++) s += target[i] * erf(k * NODES[i]); return s / Math.sqrt(width); });
  return layers.map(a => {
    let square = 0;
    for (let i = 0; i < width; i++) { let s = 0; for (let j = 0; j <= i; j++) s += K[i * width + j] * a[j]; square += a[i] * s; }
    return square - 2 * dot(a, both) + own;
  });
}

// ---- the figure
const LAM = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1], NOISE = 0.1, SIGMA = parts(erf), ETA = [25 / 64, 100], POINTS = 24, SHOWN = 60, D = [32, 80];
const onGrid = i => ETA[0] * (ETA[1] / ETA[0]) ** (i / (POINTS - 1));
function sizes({d, psi_1, psi_2}) {
  const n = Math.round(psi_1 * d), width = Math.round(psi_2 * d);
  return {d, n, width, noise: NOISE, psi_1: n / d, psi_2: width / d};
}
function prepare(size, name, seed) { // all that does not depend on the step size
  const link = LINKS[name], net = drawNetwork(size, seed), step = direction(drawSample(size, seed, "first", link), net, size), at = spectra(net.w, step, size);
  const sweep = Array.from({length: POINTS}, (_, i) => [onGrid(i), at(onGrid(i)).overlaps[size.d - 1]]);
  return {size, link, target: parts(link), net, step, at, sweep, fresh: drawSample(size, seed, "fresh", link), test: normals(SHOWN * size.d, seed, "test inputs")};
}
function train({size, link, target, net, step, at, sweep, fresh, test}, eta) {
  const {n, d, width, noise} = size, {squares, overlaps} = at(eta), w = moved(net.w, step, eta), layers = ridge(w, fresh, size, LAM), all = risks(w, layers, link, size);
  const best = all.indexOf(Math.min(...all)), a = layers[best], z = products(w, test, width, SHOWN, d).map(erf);
  const predicted = Array.from({length: SHOWN}, (_, i) => [test[i * d], a.reduce((s, x, k) => s + x * z[k * SHOWN + i], 0) / Math.sqrt(width)]);
  return {eta, size, link, target, sweep, singular: squares.map(Math.sqrt), overlap: overlaps[d - 1], risk: all[best], lam: LAM[best], along: profile(slopes(w, size), a), predicted,
    equivalent: Math.min(...gaussianEquivalentRisk(LAM, n, width, squares, overlaps, SIGMA, target, noise))};
}

function mount(box, given = {}) {
  const start = {eta: 25, psi_1: 8, d: 80, psi_2: 2, link: "erf", seed: 0, ...given};
  let seed = start.seed, ready, key;
  const predicted = (eta, {size, target}) => spike(eta, size.psi_1, size.psi_2, SIGMA, target, NOISE);
  const grid = ([lo, hi], count, log) => Array.from({length: count + 1}, (_, i) => log ? lo * (hi / lo) ** (i / count) : lo + (hi - lo) * i / count);
  const ticks = (...values) => values.map(v => [v, short(v)]);
  const dots = (a, points, colour, r, more = "") => points.map(([x, y]) => `<circle cx="${a.px(x).toFixed(1)}" cy="${a.py(y).toFixed(1)}" r="${r}" fill="var(--${colour})" ${more}/>`).join("");
  const two = x => short(+x.toPrecision(2)), dashed = {dash: "6 4"}, now = 'stroke="var(--ink)" stroke-width="1.5"';

  function singularValues(v, result) {
    const {eta, size: {d, psi_2}, singular} = result, x = [0.15, 200], edges = grid(x, 72, true), width = Math.log(edges[1] / edges[0]), bins = new Float64Array(72);
    for (const s of singular.slice(0, -1)) bins[Math.floor(Math.log(s / x[0]) / width)]++; // what lies left of the axis changes nothing
    const top = singular[d - 1], limit = predicted(eta, result).singularValue, high = 3.6 * Math.sqrt(psi_2) / Math.PI, edge = 1 + Math.sqrt(psi_2);
    const a = axes({x, y: [0, high], logx: true, xlabel: "singular value of W₁", xticks: ticks(0.3, 1, 3, 10, 30, 100), yticks: []});
    const law = grid([Math.sqrt(psi_2) - 1, edge], 120).map(s => [s, s * bulkDensity(s, psi_2)]); // a share of ln s
    v.svg(0, a.frame() + a.bars(edges, Array.from(bins, c => c / (d * width)), {colour: "soft"}) + a.line(law, dashed) + a.upright(limit, {colour: "ink", ...dashed}) +
      dots(a, [[top, 0.05 * high]], "signal", 5.5, now), `The largest singular value is ${short(top)}, in the limit ${short(limit)}. The others reach from ${short(singular[0])} to ${short(singular[d - 2])}, ` +
      `in the limit from ${short(Math.sqrt(psi_2) - 1)} to ${short(edge)}.`);
  }

  function overlap(v, result) {
    const {eta} = result, a = axes({x: ETA, y: [0, 1], logx: true, xlabel: "step size η", ylabel: "overlap ⟨u₁, β∗⟩²", xticks: ticks(1, 3, 10, 30, 100)});
    const limit = predicted(eta, result).overlap;
    v.svg(1, a.frame() + a.line(grid(ETA, 200, true).map(e => [e, predicted(e, result).overlap]), dashed) + dots(a, result.sweep, "signal", 2.8) +
      dots(a, [[eta, result.overlap]], "signal", 5.5, now), `At step size ${short(eta)} the overlap is ${result.overlap.toFixed(2)}, in the limit ${limit.toFixed(2)}. ` +
      `Over the step sizes it grows to ${result.sweep[POINTS - 1][1].toFixed(2)}.`);
  }

  function prediction(v, {link, target, along, predicted}) {
    const x = [-2.5, 2.5], y = link === LINKS.even ? [-1.3, 3.2] : [-1.5, 1.5], a = axes({x, y, xlabel: "index ⟨x, β∗⟩"});
    const curve = f => grid(x, 100).map(z => [z, f(z)]).filter(([, p]) => p > y[0] && p < y[1]), inside = predicted.filter(([z, p]) => Math.abs(z) < x[1] && p > y[0] && p < y[1]);
    v.svg(2, a.frame() + dots(a, inside, "soft", 1.8) + a.line(curve(z => target.mu_0 + target.mu_1 * z), {dash: "1.5 4"}) + a.line(curve(along), {colour: "signal", width: 3.5}) + a.line(curve(link), dashed),
      `Mean prediction at index 1: ${short(along(1))}, at 2: ${short(along(2))}. The target is ${short(link(1))} and ${short(link(2))}, its best line ${short(target.mu_1)} and ${short(2 * target.mu_1)}.`);
  }

  function say(v, result) {
    const {eta, size, target, singular, risk, equivalent} = result, limit = predicted(eta, result), critical = spikeThreshold(size.psi_1, size.psi_2, SIGMA, target, NOISE), floor = target.mu_2 ** 2;
    const value = `The largest singular value is ${short(singular[size.d - 1])} (theory ${short(limit.singularValue)}${eta > critical ? "" : ", the edge of the bulk"})`;
    const more = singular.slice(0, -1).filter(s => s > 1.1 * (1 + Math.sqrt(size.psi_2))).length, left = more ? ` The rest of the gradient carries ${more} more beyond the bulk’s edge.` : "";
    v.say(`η = ${short(eta)} is ${two(eta / critical)} times the threshold ${short(critical)}. ${value}, the overlap ${result.overlap.toFixed(2)} (theory ${limit.overlap.toFixed(2)}).${left} ` +
      `After ridge regression the risk is ${short(risk)}, ${risk < floor ? "below" : "above"} the linear floor ${short(floor)}; the Gaussian equivalent, a linear model with noise that has the features’ first two moments, has ${short(equivalent)}.`);
  }

  return live.figure(box, {
    label: "Live figure: one gradient step on the first layer of a network",
    controls: [ // step size and samples move in octaves, which round numbers lie on to the last digit
      {name: "eta", kind: "range", label: "step size η", min: -6, max: 2, step: 1 / 16, value: Math.log2(start.eta / 25), show: (_, {eta, ...r}) => `${short(eta)} = ${two(eta / Math.sqrt(r.size.width))}√N`},
      {name: "psi_1", kind: "range", label: "samples n", min: -2, max: 3, step: 0.25, value: Math.log2(start.psi_1), show: (_, r) => `${r.size.n} = ${short(r.size.psi_1)}d`},
      {name: "psi_2", rest: true, kind: "range", label: "neurons N", min: 1.5, max: 3, step: 0.5, value: start.psi_2, show: (_, r) => `${r.size.width} = ${short(r.size.psi_2)}d`},
      {name: "d", rest: true, kind: "range", label: "dimension d", min: D[0], max: D[1], step: 8, value: start.d},
      {name: "link", kind: "choice", label: "target σ∗", value: start.link, choices: {erf: "erf", tanh: "tanh", even: "even, (z² − 1)/√2"}},
      {name: "again", kind: "button", label: "New data", act: v => { seed++; v.refresh(); }},
    ],
    panels: [
      {caption: 'Singular values of the first layer, erf neurons: <b>bulk (bars)</b> and <b style="color:var(--signal)">the largest (dot)</b>. Dashed: in the limit d&nbsp;→&nbsp;∞, the law of the random start, and the place of ' +
        'the largest, around which single draws scatter, by some 7 % at d = 80.'},
      {caption: 'Squared cosine of the top singular direction with β∗. <b style="color:var(--signal)">Dots</b>: this draw; the large one is at the present η. Dashed: the limit, if ' +
        'the gradient is replaced by the rank-one matrix a vᵀ, with a the output weights and v the average of μ₁ y x (μ₁: mean slope of the activation).'},
      {caption: 'Prediction of ridge regression, λ best in hindsight, on a fresh sample: <b style="color:var(--signal)">its mean (line)</b> and single inputs (grey dots). Dashed: target. Dotted: its best line.'},
    ],
    compute(s) {
      const size = sizes({...s, psi_1: 2 ** s.psi_1}), now = [size.d, size.n, size.width, s.link, seed].join();
      if (now !== key) { ready = prepare(size, s.link, seed); key = now; } // the step size alone needs no new gradient
      return train(ready, 25 * 2 ** s.eta);
    },
    draw: (v, result) => { singularValues(v, result); overlap(v, result); prediction(v, result); say(v, result); },
  });
}

live.one_step = {spectrum, erf, parts, spike, spikeThreshold, bulkDensity, gaussianEquivalentRisk, drawSample, drawNetwork, direction, moved, spectra, ridge, slopes, profile,
  risks, sizes, prepare, train, mount, LINKS};
})(globalThis.flbookLive);
