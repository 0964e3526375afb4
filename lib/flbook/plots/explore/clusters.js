/* Four clusters: exclusive or beside noise, for a trained network and three rivals that learn no feature, in the reader's browser.

   The noise is orthogonal to the plane of the signals u and v, so a filter is two numbers in the plane and one on each noise patch: the
   state of flbook/lectures/benign_overfitting/xor/xor_gram.py, where the derivation stands. Data are inner products, and d costs nothing. */
(live => {
"use strict";
const {random, bartlett, cholesky, short, axes} = live;

// ---- data: clusters +u, +v, -u, -v take turns; noise and initial filters outside their plane are rows of Bartlett's factor
function drawXorGram({n, k, d, sigma_0 = 1, seed = 0, points = 256}) {
  const stream = random(seed, "gram"), test = random(seed, "test"), N = n + k, rank = Math.min(N, d - 2), h = new Float64Array(rank);
  const rows = bartlett(N, d - 2, stream).map((row, i) => i < n ? row : row.map(x => sigma_0 * x));
  const inner = (a, b) => { let s = 0; for (let p = Math.min(a.length, b.length) - 1; p >= 0; p--) s += a[p] * b[p]; return s; };
  const g = {n, k, plane: Float64Array.from({length: 2 * k}, () => sigma_0 * stream.normal()), xi_xi: new Float64Array(n * n), w_xi: new Float64Array(k * n)};
  for (let i = 0; i < n; i++) for (let p = 0; p <= i; p++) g.xi_xi[i * n + p] = g.xi_xi[p * n + i] = inner(rows[i], rows[p]);
  for (let at = 0; at < k * n; at++) g.w_xi[at] = inner(rows[n + (at / n | 0)], rows[at % n]);
  const on_xi = new Float64Array(points * n), on_w = new Float64Array(points * k);
  for (let q = 0; q < points; q += 2) { // fresh noise in the span of all these, each patch beside its negative
    for (let p = 0; p < rank; p++) h[p] = test.normal();
    for (let i = 0; i < N; i++) {
      const s = inner(rows[i], h), [to, size, at] = i < n ? [on_xi, n, i] : [on_w, k, i - n];
      to[q * size + at] = s; to[(q + 1) * size + at] = -s;
    }
  }
  return {...g, fresh: {points, on_xi, on_w}};
}
function signals(angle, u, v) { // symmetric about the first axis
  const half = angle * Math.PI / 360, c = Math.cos(half), s = Math.sin(half);
  return [u * c, u * s, v * c, -v * s];
}
const four = ([ux, uy, vx, vy]) => [[ux, uy], [vx, vy], [-ux, -uy], [-vx, -vy]], label = c => 1 - 2 * (c % 2);
const observe = (n, p) => Float64Array.from({length: n}, (_, i) => i < Math.round(p * n) ? -label(i) : label(i)); // exactly round(pn) flipped

// ---- the network in coefficients; `model`: "network", "lazy" (gates as they were at the start) or "linear" (sigma(z) = z);
//      `patches`: 2 for [cluster, noise], 1 for their sum
class XorNetwork {
  constructor(gram, observed, {model = "network", patches = 2, signals, scale = 2 / gram.k}) {
    const {n, k} = gram;
    Object.assign(this, {g: gram, n, k, observed, model, patches, signals, scale, plane: gram.plane.slice(), c: new Float64Array(k * n), noise: gram.w_xi.slice(),
      f: new Float64Array(n), shift: new Float64Array(n), open: new Int32Array(n), gates: new Uint8Array(k * n), onCluster: new Uint8Array(4 * k), corners: four(signals)});
    this.look();
  }
  a(r) { return r < this.k / 2 ? this.scale : -this.scale; }
  on(z, z_0) { return this.model === "linear" || (this.model === "lazy" ? z_0 : z) > 0; } // a response is this gate times z, because relu is homogeneous
  inPlane(plane, r, [x, y]) { return plane[2 * r] * x + plane[2 * r + 1] * y; }
  look() { // outputs at the present coefficients
    const {g, n, k, f, noise, patches, gates, onCluster, corners} = this, z = [0, 0, 0, 0], z_0 = [0, 0, 0, 0];
    f.fill(0);
    for (let r = 0; r < k; r++) {
      const at = r * n, a = this.a(r);
      for (let c = 0; c < 4; c++) {
        z[c] = this.inPlane(this.plane, r, corners[c]); z_0[c] = this.inPlane(g.plane, r, corners[c]);
        onCluster[4 * r + c] = this.on(z[c], z_0[c]);
      }
      for (let i = 0; i < n; i++) {
        const c = i % 4, one = patches === 1, x = noise[at + i] + (one ? z[c] : 0);
        if (gates[at + i] = this.on(x, g.w_xi[at + i] + (one ? z_0[c] : 0))) f[i] += a * x;
        if (!one && onCluster[4 * r + c]) f[i] += a * z[c];
      }
    }
  }
  step(lr) { // gradient descent on the logistic loss
    const {g, n, k, observed, f, noise, c, plane, patches, gates, onCluster, shift, open} = this, sums = [0, 0, 0, 0];
    const pull = f.map((out, i) => lr * observed[i] / (1 + Math.exp(observed[i] * out)) / n);
    for (let i = 0; i < n; i++) sums[i % 4] += pull[i];
    for (let r = 0; r < k; r++) {
      const at = r * n, a = this.a(r), moved = sums.map((s, j) => patches === 2 && onCluster[4 * r + j] ? s : 0);
      let count = 0;
      for (let i = 0; i < n; i++) if (gates[at + i]) {
        open[count++] = i;
        c[at + i] += a * pull[i];
        if (patches === 1) moved[i % 4] += pull[i];
      }
      if (!r || this.model !== "linear") combine(shift, g.xi_xi, pull, open, count); // linear filters all see the same
      for (let i = 0; i < n; i++) noise[at + i] += a * shift[i];
      for (let j = 0; j < 2; j++) plane[2 * r + j] += a * ((moved[0] - moved[2]) * this.signals[j] + (moved[1] - moved[3]) * this.signals[2 + j]);
    }
    this.look();
  }
  classifier({points, on_xi, on_w} = {points: 0}) { // a function of a signal s in the plane: outputs on [s, xi] for every fresh xi, or on s alone for none
    const {n, k, c, patches, g} = this, z = new Float64Array(points * k), still = new Float64Array(points), out = new Float64Array(Math.max(points, 1));
    for (let at = 0; at < points * k; at++) {
      const q = at / k | 0, r = at % k;
      let s = on_w[at];
      for (let i = 0; i < n; i++) s += c[r * n + i] * on_xi[q * n + i];
      z[at] = s;
      if (patches === 2 && this.on(s, on_w[at])) still[q] += this.a(r) * s;
    }
    return s => {
      let alone = 0;
      const now = new Float64Array(k), first = now.map((_, r) => this.inPlane(g.plane, r, s));
      for (let r = 0; r < k; r++) if (this.on(now[r] = this.inPlane(this.plane, r, s), first[r])) alone += this.a(r) * now[r];
      if (!points || patches === 2) return out.map((_, q) => alone + (points && still[q]));
      out.fill(0);
      for (let at = 0; at < points * k; at++) {
        const r = at % k, x = now[r] + z[at];
        if (this.on(x, first[r] + on_w[at])) out[at / k | 0] += this.a(r) * x;
      }
      return out;
    };
  }
}
function combine(to, K, by, rows, count) { // the sum of by[i] * (row i of K) over the first `count` of `rows`, four at a time
  const n = to.length;
  let j = 0;
  to.fill(0);
  for (; j + 3 < count; j += 4) {
    const i = rows[j], l = rows[j + 1], r = rows[j + 2], t = rows[j + 3], a = by[i], b = by[l], c = by[r], e = by[t];
    for (let p = 0, I = i * n, L = l * n, R = r * n, T = t * n; p < n; p++) to[p] += a * K[I + p] + b * K[L + p] + c * K[R + p] + e * K[T + p];
  }
  for (; j < count; j++) for (let p = 0, I = rows[j] * n, a = by[rows[j]]; p < n; p++) to[p] += a * K[I + p];
}

/* The fixed kernel <x, x'>^2 fitted to all labels. Two patches or their sum are the same to it, because the noise is orthogonal to the plane. */
class QuadraticKernel {
  constructor({n, xi_xi}, observed, {signals, fitted = true}) {
    const corners = four(signals), pull = Float64Array.from(observed), A = xi_xi.map((s, at) => (corners[(at / n | 0) % 4].reduce((sum, x, j) => sum + x * corners[at % n % 4][j], s)) ** 2);
    Object.assign(this, {n, corners, pull});
    if (fitted) {
      const tiny = 1e-9 * pull.reduce((sum, _, i) => sum + A[i * (n + 1)], 0) / n, L = cholesky(A.map((x, at) => at % (n + 1) ? x : x + tiny), n, 0);
      for (let i = 0; i < n; i++) { for (let p = 0; p < i; p++) pull[i] -= L[i * n + p] * pull[p]; pull[i] /= L[i * (n + 1)]; }
      for (let i = n - 1; i >= 0; i--) { for (let p = i + 1; p < n; p++) pull[i] -= L[p * n + i] * pull[p]; pull[i] /= L[i * (n + 1)]; }
    }
    this.f = pull.map((_, i) => pull.reduce((sum, a, p) => sum + A[i * n + p] * a, 0));
  }
  classifier({points, on_xi} = {points: 0}) { // sum_i pull_i (<s, c_i> + <xi, xi_i>)^2, sorted by powers of s
    const {n, pull, corners} = this, of = new Float64Array(3 * points), out = new Float64Array(Math.max(points, 1)), M = [0, 0, 0];
    for (let i = 0; i < n; i++) {
      const [x, y] = corners[i % 4], a = pull[i];
      M[0] += a * x * x; M[1] += 2 * a * x * y; M[2] += a * y * y;
      for (let q = 0; q < points; q++) { const on = on_xi[q * n + i]; of[3 * q] += 2 * a * x * on; of[3 * q + 1] += 2 * a * y * on; of[3 * q + 2] += a * on * on; }
    }
    return ([x, y]) => out.map((_, q) => M[0] * x * x + M[1] * x * y + M[2] * y * y + (points && of[3 * q] * x + of[3 * q + 1] * y + of[3 * q + 2]));
  }
}

// ---- training: the settings of the lecture's runs, with a step that a strong signal cannot overshoot
const MODELS = ["network", "lazy", "kernel", "linear"], SETUP = {2: {m: 16, steps: 60, rate: 0.5, start: () => 1e-10}, 1: {m: 10, steps: 100, rate: 0.4, start: d => 0.05 / Math.sqrt(d)}};
const stepSize = ({n, d, u, v, patches}, {m, rate} = SETUP[patches]) => rate * m * n / (d + n * (u * u + v * v) / 32 + (patches === 1 ? n : 0));
const errorOf = (f, y) => f.reduce((s, out) => s + (y * out <= 0), 0) / f.length; // silence is wrong, too
const memory = new Map(); // the last draws: most controls leave the noise as it is
function drawn({n, d, patches, seed}) {
  const key = [n, d, patches, seed].join(), {m, start} = SETUP[patches];
  if (memory.size > 7 && !memory.has(key)) memory.clear();
  if (!memory.has(key)) memory.set(key, drawXorGram({n, k: 2 * m, d, sigma_0: start(d), seed}));
  return memory.get(key);
}
function train(model, s) { // s: {n, d, angle, u, v, p, patches, seed}; u and v are lengths
  const g = drawn(s), observed = observe(s.n, s.p), how = {signals: signals(s.angle, s.u, s.v), patches: s.patches, model};
  const learned = model === "kernel" ? new QuadraticKernel(g, observed, how) : new XorNetwork(g, observed, how);
  if (model !== "kernel") for (let t = 0, lr = stepSize(s); t < SETUP[s.patches].steps; t++) learned.step(lr);
  const classify = learned.classifier(g.fresh), byCluster = learned.corners.map((corner, c) => errorOf(classify(corner), label(c)));
  return {learned, byCluster, testError: byCluster.reduce((s, e) => s + e, 0) / 4, missed: learned.f.filter((f, i) => f * observed[i] <= 0).length};
}

// ---- what theory says, at noise level 1
const strength = ({n, d, u, v}) => n * (u * v) ** 2 / d; // r
function Phi(x) { // distribution function of a standard normal number, by its series
  if (Math.abs(x) > 8) return x > 0 ? 1 : 0;
  let term = x, sum = x;
  for (let i = 3; Math.abs(term) > 1e-17; i += 2) sum += term *= x * x / i;
  return 0.5 + sum * Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
}
/* Test errors in closed form, every sample pulling alike: the kernel for large n and d, the lazy network besides for many filters. Labels
   that are fitted make them differ if n > d, or if u and v are not equally long. The trained network has none. */
function closedForm(model, {n, d, angle, u, p, patches, ...s}) {
  if (model === "linear") return 0.5;
  if (model === "network" || n > d || !equal({u, ...s})) return NaN;
  const theta = angle * Math.PI / 180, keep = 1 - 2 * p, mu2 = u * u, cos2 = Math.cos(theta) ** 2, sin2 = 1 - cos2;
  if (model === "kernel") return Phi(-keep * Math.sqrt(n) * mu2 ** 2 * sin2 / (2 * Math.sqrt(2 * d * (d + mu2 ** 2 * (1 + cos2)))));
  if (patches === 1) return Phi(-keep * n * mu2 ** 2 * sin2 / (Math.PI * d * Math.sqrt(n * d)));
  return Phi(-keep * Math.sqrt(n / d) * mu2 * (1 - Math.cos(theta) * (1 - 2 * theta / Math.PI)) / 2);
}
/* The r at which the network's error is 1/4 in two patches: the law of angle and wrong labels follows from its signal, the number is measured. */
const equal = ({u, v}) => Math.abs(v / u - 1) < 0.01, borderOf = ({angle, p, patches, ...s}) => patches === 1 || !equal(s) ? NaN : 3.7 / (Math.sin(angle * Math.PI / 180) ** 4 * (1 - 2 * p) ** 2);

// ---- the figure
const DASH = {network: "", lazy: "7 4", kernel: "2 3", linear: "11 3 2 3"}, THICK = {network: 4.5, lazy: 2.2, kernel: 2.6, linear: 1.8}, NAMES = ["u", "v", "−u", "−v"];
const SHAPE = {network: "M0-6L5.5 4H-5.5Z", lazy: "M0-6L5 0 0 6-5 0Z", kernel: "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z", linear: "M-5-5 5 5M5-5-5 5"};
const {W: WIDE, H: HIGH} = live.field, ROOM = 84, ACROSS = 39, DOWN = 29, RS = Array.from({length: 11}, (_, i) => 10 ** (i / 2 - 1)), LIMITS = {angle: [10, 170], mu: [1, 64], stretch: [0.25, 4]};
const ink = model => `var(--${model})`, percent = x => `${Math.round(100 * x)}\u00a0%`, three = x => x.toFixed(3), bold = (name, words = name) => `<b style="color:${ink(name)}">${words}</b>`;
const put = (x, y, body, scale = 1) => `<g transform="translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale})">${body}</g>`;
const marker = (x, y, model, scale) => put(x, y, `<path d="${SHAPE[model]}" style="${model === "linear" ? "stroke:var(--linear);stroke-width:2.4" : `fill:${ink(model)};stroke:var(--ground);stroke-width:.7`}"/>`, scale);
const cluster = c => `<${c % 2 ? 'rect x="-7" y="-7" width="14" height="14"' : 'circle r="8"'} style="fill:var(--${c % 2 ? "noise" : "signal"});stroke:var(--ground);stroke-width:1.3"/>`; // label +1 or -1
const halo = 'style="paint-order:stroke;stroke:var(--ground);stroke-width:4px;stroke-linejoin:round"';

function mount(box, given = {}) {
  const start = {n: 40, d: 2000, angle: 90, mu: 8, stretch: 1, p: 0.1, patches: 2, model: "network", seed: 0, draws: 6, ...given};
  let seed = start.seed, sweep = {}, held = false, reach = 1, visible = false, last;
  const setting = s => ({n: Math.round(s.n), d: Math.round(s.d), angle: Math.round(s.angle), u: s.mu, v: s.mu * s.stretch, p: s.p, patches: +s.patches, seed});
  const range = (name, label, min, max, step, more) => ({name, kind: "range", label, min, max, step, value: start[name], ...more}), log = {log: true}, rest = true, fine = 0.0075257; // 40 steps double a length

  const view = live.figure(box, {
    label: "Live figure: four clusters, a trained network and three rivals that learn no feature",
    controls: [
      range("angle", "angle θ", ...LIMITS.angle, 1, {show: x => `${Math.round(x)}°`}),
      range("mu", "signal |u|", ...LIMITS.mu, fine, log),
      range("stretch", "ratio |v|/|u|", ...LIMITS.stretch, fine, {...log, rest}),
      range("d", "dimension d", 20, 20 * 10 ** 4.7, 0.05, {...log, rest, show: x => short(Math.round(x))}),
      range("n", "samples n", 20, 100, 4, {rest}),
      range("p", "wrong labels p", 0, 0.3, 0.05, {rest, show: percent}),
      {name: "patches", kind: "choice", label: "cluster and noise", value: start.patches, choices: {2: "in two patches", 1: "added in one patch"}},
      {name: "model", rest: true, kind: "choice", label: "shade", value: start.model, choices: {network: "trained network", lazy: "lazy network (fixed gates)", kernel: "kernel ⟨x,x′⟩²", linear: "linear"}},
      {name: "again", kind: "button", label: "New data", act: v => { seed++; v.refresh(); }},
    ],
    panels: [
      {caption: "The plane of u and v. Drag u (label +1) or v (label −1), or use the arrow keys on them."},
      {caption: "Test error of each model now. Dotted: chance. Dashed: theory, where there is a closed form (lazy: of many filters)."},
      {caption: ""},
    ],
    only: ["model"],
    compute: values => {
      const s = setting(values), models = Object.fromEntries(MODELS.map(model => [model, train(model, s)]));
      for (const model of MODELS) models[model].zeros = zeros(models[model].learned);
      return {s, models};
    },
    draw: (v, result, values) => { last = result; plane(result, values.model); bars(result); curves(result); say(result); },
  });

  // -- the plane: a picture for the shade, lines and marks above it, and two handles that stay where the focus is
  const svg = view.panels[0], picture = document.createElement("canvas");
  svg.setAttribute("role", "group");
  box.insertAdjacentHTML("beforeend", `<p style="margin:.4em 0 0;font-size:13.5px">In the plane: lines, where outputs change sign without noise, ${bold("network")} thick, ${bold("lazy")} dashed,
    ${bold("kernel")} dotted, ${bold("linear")} dash-dotted; shade, what the chosen model says with noise, blue for +1; %, how often it is right; small dots, where its filters moved.</p>`);
  svg.innerHTML = `<image width="${WIDE}" height="${HIGH}" preserveAspectRatio="none"></image><g></g>` + ["u", "v"].map(of =>
    `<g tabindex="0" role="slider" aria-label="Signal ${of}: left and right turn it, up and down stretch it" style="cursor:grab;touch-action:none"></g>`).join("");
  const [shade, drawing, ...handles] = svg.children;
  picture.width = ACROSS; picture.height = DOWN;

  function zeros(learned) { // directions in which the output on a signal alone changes its sign; it grows evenly along a ray
    const f = learned.classifier(), value = Array.from({length: 721}, (_, i) => f([Math.cos(i * Math.PI / 360), Math.sin(i * Math.PI / 360)])[0]);
    return value.flatMap((x, i) => i < 720 && x > 0 !== value[i + 1] > 0 ? [(i + x / (x - value[i + 1])) * Math.PI / 360] : []);
  }

  function plane({s, models}, model) {
    if (!held) reach = Math.max(2.4 * (3.7 * s.d / s.n) ** 0.25, 1.25 * s.u, 1.25 * s.v);
    const {learned, byCluster} = models[model], {corners, g, k = 0} = learned, scale = ROOM / reach, points = 128, {on_xi, on_w} = drawn(s).fresh;
    const classify = learned.classifier({points, on_xi: on_xi.subarray(0, points * s.n), on_w: on_w.subarray(0, points * k)});
    const c = picture.getContext("2d"), pixels = c.createImageData(ACROSS, DOWN), [plus, minus] = ["signal", "noise"].map(name => view.colour(name).match(/\w\w/g).map(x => parseInt(x, 16)));
    let body = "";
    for (let j = 0; j < DOWN; j++) for (let i = 0; i < ACROSS; i++) {
      const x = (i + 0.5) / ACROSS * WIDE, y = (j + 0.5) / DOWN * HIGH, more = 1 - 2 * errorOf(classify([(x - WIDE / 2) / scale, (HIGH / 2 - y) / scale]), 1);
      pixels.data.set([...(more > 0 ? plus : minus), 110 * Math.abs(more)], 4 * (j * ACROSS + i));
      if (j % 6 === 2 && i % 4 === 3 && Math.abs(more) > 0.3) body += `<text x="${x.toFixed(1)}" y="${(y + 4).toFixed(1)}" text-anchor="middle" style="fill:var(--soft)" aria-hidden="true">${more > 0 ? "+" : "−"}</text>`;
    }
    c.putImageData(pixels, 0, 0);
    shade.setAttribute("href", picture.toDataURL());
    const ray = (x, y, style) => `<path d="M${WIDE / 2} ${HIGH / 2}l${x.toFixed(1)} ${(-y).toFixed(1)}" fill="none" ${style}/>`;
    for (const name of ["network", "linear", "lazy", "kernel"]) for (const t of models[name].zeros) {
      const x = Math.cos(t), y = Math.sin(t), far = Math.min(WIDE / 2 / Math.abs(x), HIGH / 2 / Math.abs(y));
      body += ray(far * x, far * y, `style="stroke:${ink(name)}" stroke-width="${THICK[name]}" stroke-dasharray="${DASH[name]}"`);
    }
    const ring = (borderOf(s) * s.d / s.n) ** 0.25 * scale;
    if (ring < HIGH / 2) body += `<circle cx="${WIDE / 2}" cy="${HIGH / 2}" r="${ring.toFixed(1)}" fill="none" stroke="var(--ink)" stroke-width="1.5" stroke-dasharray="5 4"/>`;
    if (model === "network" || model === "lazy") {
      const moved = learned.plane.map((x, i) => x - g.plane[i]), longest = Math.max(...moved.map((_, i) => Math.hypot(moved[i & ~1], moved[i | 1])));
      for (let r = 0; r < k; r++) body += put(WIDE / 2 + 34 * moved[2 * r] / longest, HIGH / 2 - 34 * moved[2 * r + 1] / longest, cluster(+(r >= k / 2)), 0.4);
    }
    corners.forEach((q, c) => {
      const x = WIDE / 2 + q[0] * scale, y = HIGH / 2 - q[1] * scale, side = q[0] < 0 ? -1 : 1, up = q[1] < 0 ? -1 : 1, beside = q[0] * side * scale < 38; // words beside the mark, or above or below it
      body += (c < 2 ? ray(q[0] * scale, q[1] * scale, `stroke="var(--${c ? "noise" : "signal"})" stroke-width="2.5"`) : put(x, y, cluster(c), 0.8)) +
        `<text x="${(x + beside * side * 13).toFixed(1)}" y="${(5 + (beside ? HIGH / 2 - up * Math.max(up * q[1] * scale, 11) : y - 17 * up)).toFixed(1)}" text-anchor="${beside ? side < 0 ? "end" : "start" : "middle"}" ${halo}><tspan font-weight="600">${NAMES[c]}</tspan> ${percent(1 - byCluster[c])}</text>`;
      if (c > 1) return;
      handles[c].innerHTML = put(x, y, '<circle r="15" fill="transparent"/>' + cluster(c));
      const [min, max] = LIMITS.mu, now = s[NAMES[c]];
      for (const [key, value] of Object.entries({min, max, now: +now.toFixed(2), text: `length ${short(now)}, angle between u and v ${s.angle}°`})) handles[c].setAttribute("aria-value" + key, value);
    });
    drawing.innerHTML = body;
    svg.setAttribute("aria-label", `The plane of u and v at ${s.angle}°. The ${model} model gets right ${byCluster.map((e, c) => `${percent(1 - e)} at ${NAMES[c]}`).join(", ")}.`);
  }

  function score(model, s, models) {
    const theory = closedForm(model, s);
    return three(models[model].testError) + (theory >= 0 ? ` (theory ${model === "linear" ? "½" : three(theory)})` : "");
  }
  function bars({s, models}) {
    const a = axes({x: [0, 0.65], y: [0, 4], xlabel: "test error", yticks: []}), rows = MODELS.map((model, i) => {
      const y = a.py(3.3 - i), e = models[model].testError, theory = closedForm(model, s);
      return `<path d="M${a.px(0.5)} ${y - 7}v19" stroke="var(--ink)" stroke-width="1.5" stroke-dasharray="1.5 3"/>` + // no line through the words
        `<path d="M${a.px(0)} ${y}H${a.px(e).toFixed(1)}" style="stroke:${ink(model)}" stroke-width="7" opacity=".55"/>` +
        (theory >= 0 ? `<path d="M${a.px(Math.min(theory, 0.65)).toFixed(1)} ${y - 10}v20" stroke="var(--ink)" stroke-width="2" stroke-dasharray="4 2.5"/>` : "") + marker(a.px(e), y, model, 1.15) +
        a.words(a.px(0) + 6, y - 11, `<tspan font-weight="600">${model}</tspan> ${score(model, s, models)}`, halo);
    });
    view.svg(1, a.frame() + rows.join(""), `Test errors: ${MODELS.map(model => `${model} ${score(model, s, models)}`).join(", ")}.`);
  }

  // -- errors over the strength of both signals, trained in slices while nobody moves anything
  function curves({s, models}) {
    const r = strength(s), a = axes({x: [RS[0], RS[10]], y: [0, 0.65], logx: true, xlabel: "r = n|u|²|v|²/d"}), at = x => ({...s, u: s.u * (x / r) ** 0.25, v: s.v * (x / r) ** 0.25});
    const key = JSON.stringify({...s, u: 1, v: (s.v / s.u).toFixed(4)});
    if (key !== sweep.key) {
      clearTimeout(sweep.timer);
      sweep = {key, at, cells: {}, todo: Array.from({length: start.draws * RS.length * 4}, (_, i) => i)};
    }
    if (visible && sweep.todo.length && !sweep.timer) sweep.timer = setTimeout(fill, 200);
    const inside = x => Math.min(Math.max(x, RS[0]), RS[10]), border = borderOf(s), level = [RS[0], RS[10]].map(x => [x, 0.5]), grid = Array.from({length: 61}, (_, i) => 10 ** (i / 12 - 1));
    const lines = isNaN(closedForm("kernel", s)) ? "" : ["kernel", "lazy"].map(model => a.line(grid.map(x => [x, closedForm(model, at(x))]), {width: 1.6, dash: "6 4"})).join("");
    const dots = MODELS.map(model => RS.map((x, i) => { const cell = sweep.cells[model + i]; return cell ? marker(a.px(x), a.py(cell.sum / cell.count), model, 0.75) : ""; }).join("") +
      marker(a.px(inside(r)), a.py(models[model].testError), model, 1.3)).join("");
    const gate = border < RS[10] ? a.line([[border, 0.18], [border, 0.32]], {width: 2.5, dash: "4 2.5"}) : "", count = (sweep.cells.linear4 || {}).count;
    view.svg(2, a.frame() + a.line(level, {width: 1.5, dash: "1.5 3"}) + lines + a.upright(inside(r), {dash: "2 3"}) + dots + gate,
      `Test error over signal strength, r from 0.1 to 10000; now r = ${short(r)}. ` + (count ? `Mean of ${count} data sets at r = 10: ${MODELS.map(model => `${model} ${three(sweep.cells[model + 4].sum / count)}`).join(", ")}.` : ""));
    view.panels[2].nextElementSibling.innerHTML = `Test error while u and v are stretched together: means of up to ${start.draws} data sets; large, the present one. ` +
      (lines ? `Dashed: theory of ${bold("kernel")} and ${bold("lazy")} network.` : "No closed form where n > d or |v| ≠ |u|.") + (gate ? ` Short dashes, and the ring in the plane: the ${bold("network", "network’s")} border (error about ¼).` : "");
  }

  function fill() {
    const end = performance.now() + 15, mine = sweep;
    do {
      const job = mine.todo.shift(), i = (job >> 2) % RS.length, model = MODELS[job % 4], cell = mine.cells[model + i] ||= {sum: 0, count: 0};
      cell.sum += train(model, {...mine.at(RS[i]), seed: seed + Math.floor(job / 4 / RS.length)}).testError;
      cell.count++;
    } while (mine.todo.length && performance.now() < end);
    if (mine.todo.length && box.isConnected) mine.timer = setTimeout(fill);
    else box.dataset.filled = mine.key;
    curves(last);
  }

  function say({s, models}) {
    const r = strength(s), wrong = Math.round(s.p * s.n), missed = MODELS.filter(model => models[model].missed), error = model => models[model].testError;
    const best = MODELS.reduce((a, b) => error(b) < error(a) ? b : a), border = borderOf(s) ? `, ${short(r / borderOf(s))} times the network’s border` : "";
    const verdict = error(best) > 0.4 ? "No model is much better than chance" : error("network") < error(best) + 0.005 ? "No model is ahead of the trained network"
      : `The ${best === "lazy" ? "lazy network" : "fixed kernel"}, which learns no feature, is ahead of the trained network`;
    view.say(`r = ${short(r)}${border}. ${verdict}. Test errors: ${MODELS.map(model => `${model} ${score(model, s, models)}`).join(", ")}. ` +
      (missed.length ? `Training labels missed, of ${s.n}: ${missed.map(model => `${model} ${models[model].missed}`).join(", ")}.` : `All fit all ${s.n} labels${wrong ? `, the ${wrong} wrong ones included` : ""}.`));
  }

  // -- the signals by hand: each handle turns and stretches its own signal, and the angle opens evenly to both sides
  function move(of, length, angle) {
    const s = view.values(), set = (name, x) => view.set(name, Math.min(Math.max(x, LIMITS[name][0]), LIMITS[name][1]));
    set("angle", Math.round(angle));
    if (of === "u") set("mu", length);
    set("stretch", of === "u" ? s.mu * s.stretch / length : length / s.mu);
    view.refresh();
  }
  handles.forEach((g, c) => {
    const of = NAMES[c], side = label(c);
    g.onpointerdown = e => { held = true; g.setPointerCapture(e.pointerId); g.focus({preventScroll: true}); e.preventDefault(); };
    g.onpointerup = g.onpointercancel = () => { held = false; view.refresh(false); };
    g.onpointermove = e => {
      if (!held) return;
      const q = svg.getBoundingClientRect(), unit = WIDE / q.width * reach / ROOM, x = (e.clientX - q.left - q.width / 2) * unit, y = side * (q.top + q.height / 2 - e.clientY) * unit;
      move(of, Math.hypot(x, y), Math.atan2(Math.max(y, 0), x) * 360 / Math.PI);
    };
    g.onkeydown = e => {
      const by = {ArrowLeft: [1, 2 * side], ArrowRight: [1, -2 * side], ArrowUp: [1.06, 0], ArrowDown: [1 / 1.06, 0]}[e.key], s = setting(view.values());
      if (by) { e.preventDefault(); move(of, s[of] * by[0], s.angle + by[1]); }
    };
  });

  new IntersectionObserver((entries, seen) => { // the curves are trained while one looks
    if (entries.some(e => e.isIntersecting)) { seen.disconnect(); visible = true; if (last) curves(last); }
  }).observe(box);
  return view;
}

live.clusters = {drawXorGram, signals, observe, XorNetwork, QuadraticKernel, stepSize, train, closedForm, borderOf, mount};
})(globalThis.flbookLive);
