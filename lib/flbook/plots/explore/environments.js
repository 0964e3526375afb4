/* Two environments, an invariant and a spurious feature: where risk and a penalty lead in the plane of the two.

   Outputs are f = a s_1 + b s_2, with infinitely many samples and no noise. Names and formulas are those of
   flbook/lectures/training_strategies/out_of_distribution/plane.py; the flow is stiff where the penalty is large, so its steps are implicit. */
(live => {
"use strict";
const {short, axes, viridis} = live;
const [LEFT, TOP, WIDE, HIGH] = ["LEFT", "TOP", "WIDE", "HIGH"].map(name => 2 * live.field[name]); // a canvas has two pixels a unit

const SIGNS = [[1, 1], [1, -1], [-1, 1], [-1, -1]], sigmoid = z => 1 / (1 + Math.exp(-z)), odds = p => Math.log(1 / p - 1);
class Plane { // penalty: "irm" or "vrex"; weight 0 is risk alone
  constructor({alpha, betas, penalty = "irm", weight = 0}) {
    Object.assign(this, {alpha, betas, penalty, weight});
    this.shares = betas.map(beta => SIGNS.map(([s, t]) => (s > 0 ? 1 - alpha : alpha) * (t > 0 ? 1 - beta : beta)));
  }
  erm() { return [odds(this.alpha), odds(this.betas.reduce((s, b) => s + b, 0) / this.betas.length)]; }
  gradient([a, b]) {
    const {shares, weight} = this, E = shares.length, of = SIGNS.map(([s, t]) => { const f = a * s + b * t, p = sigmoid(f); return {f, p, slope: p - 1}; });
    const sums = shares.map(row => { // of an environment: risk, its gradient, c and its gradient
      let risk = 0, c = 0, ra = 0, rb = 0, ca = 0, cb = 0;
      row.forEach((share, k) => {
        const {f, p, slope} = of[k], [s, t] = SIGNS[k], bend = slope + f * p * (1 - p);
        risk += share * (f > 0 ? Math.log1p(Math.exp(-f)) : Math.log1p(Math.exp(f)) - f); c += share * slope * f;
        ra += share * slope * s; rb += share * slope * t; ca += share * bend * s; cb += share * bend * t;
      });
      return {risk, c, ra, rb, ca, cb};
    });
    const mean = sums.reduce((s, q) => s + q.risk, 0) / E;
    return ["a", "b"].map(x => sums.reduce((s, q) => s + q["r" + x] + 2 * weight * (this.penalty === "irm" ? q.c * q["c" + x] : (q.risk - mean) * q["r" + x]), 0) / E);
  }
  bend(w, h = 1e-6) { // derivatives of the gradient
    const [p, q, r, s] = [[h, 0], [-h, 0], [0, h], [0, -h]].map(([x, y]) => this.gradient([w[0] + x, w[1] + y]));
    return [(p[0] - q[0]) / (2 * h), (r[0] - s[0]) / (2 * h), (p[1] - q[1]) / (2 * h), (r[1] - s[1]) / (2 * h)];
  }
  implicit(w, h, [p, q, r, s]) { // one linearly implicit step: (1 + hJ) move = -h gradient
    const [ga, gb] = this.gradient(w), A = 1 + h * p, B = h * q, C = h * r, D = 1 + h * s, det = A * D - B * C;
    return [w[0] - h * (D * ga - B * gb) / det, w[1] - h * (A * gb - C * ga) / det];
  }
  /* Gradient flow from a start up to each time of a rising list: two half steps against one, extrapolated; steps keep the error at `within`. */
  flow(start, times, within = 1e-5) {
    let w = start, t = 0, h = 1e-3 / (1 + this.weight);
    return times.map(end => {
      while (t < end * (1 - 1e-12)) {
        const step = Math.min(h, end - t), J = this.bend(w), one = this.implicit(w, step, J), half = this.implicit(w, step / 2, J), two = this.implicit(half, step / 2, this.bend(half));
        const error = Math.hypot(two[0] - one[0], two[1] - one[1]), fine = Number.isFinite(error) && error <= within;
        if (fine) { w = [2 * two[0] - one[0], 2 * two[1] - one[1]]; t += step; }
        h = step * (Number.isFinite(error) ? Math.min(4, Math.max(0.2, 0.9 * Math.sqrt(within / (error + 1e-300)))) : 0.1);
      }
      return w;
    });
  }
  end(start, time = 3000, within = 1e-3) { return this.flow(start, [time], within)[0]; }
}

// ---- the figure
const A = [0, 1.6], B = [0, 2.4], BETA = [0.02, 0.48], CELLS = 20, T = [1e-4, 3000], TIMES = Array.from({length: 80}, (_, i) => T[0] * (T[1] / T[0]) ** (i / 79));
function mount(box, given = {}) {
  const first = {beta_1: 0.1, beta_2: 0.2, weight: 1000, alpha: 0.25, penalty: "irm", start: "spurious", ...given};
  let own = null, basins = new Map(), pairs = new Map(), drawn = "", drawnPairs = "", filling = 0;
  const setting = s => ({alpha: s.alpha, betas: [s.beta_1, s.beta_2], penalty: s.penalty, weight: +s.weight.toPrecision(3)});
  const startOf = (s, plane) => ({risk: plane.erm(), spurious: [0, plane.erm()[1]], zero: [0, 0], own: own || plane.erm()})[s.start];

  function compute(s) {
    const all = setting(s), plane = new Plane(all), key = JSON.stringify(all), keyPairs = JSON.stringify([all.alpha, all.penalty, all.weight, s.start, own]);
    if (key !== drawn) { drawn = key; basins = new Map(); }
    if (keyPairs !== drawnPairs) { drawnPairs = keyPairs; pairs = new Map(); }
    const start = startOf(s, plane), risk = new Plane({...all, weight: 0}).flow([0, 0], TIMES);
    return {...all, from: s.start, plane, start, path: plane.flow(start, TIMES), risk};
  }

  const view = live.figure(box, {
    label: "Live figure: risk and a penalty in the plane of an invariant and a spurious feature",
    controls: [
      {name: "beta_1", kind: "range", label: "spurious feature wrong in 1, β₁", min: BETA[0], max: BETA[1], step: 0.01, value: first.beta_1},
      {name: "beta_2", kind: "range", label: "and in 2, β₂", min: BETA[0], max: BETA[1], step: 0.01, value: first.beta_2},
      {name: "weight", kind: "range", label: "weight λ", min: 1, max: 1e5, step: 0.1, log: true, value: first.weight, show: w => short(+w.toPrecision(3))},
      {name: "start", kind: "choice", label: "penalty starts", value: first.start, choices: {risk: "after risk", spurious: "at spurious alone", zero: "from zero", own: "where I click"}},
      {name: "alpha", rest: true, kind: "range", label: "invariant feature wrong, α", min: 0.05, max: 0.45, step: 0.05, value: first.alpha},
      {name: "penalty", rest: true, kind: "choice", label: "penalty", value: first.penalty, choices: {irm: "IRMv1", vrex: "VREx"}},
    ],
    panels: [
      {canvas: true, caption: "Invariant feature a, spurious feature b. Thin: risk alone, from 0. Thick: with the penalty, from the ring to the disc. Ground: how much of a is there in the end, from dark (0) to bright (all). Click for a start."},
      {caption: '<b style="color:var(--signal)">Invariant feature (thick)</b> and <b style="color:var(--noise)">spurious feature (dashes)</b> over time under the penalty. Dotted: all of the invariant feature.'},
      {canvas: true, caption: "How much of the invariant feature there is in the end, over β₁ and β₂, from such a start. Dark: none. Ring: the present pair. Click for another."},
    ],
    compute,
    draw: (v, now) => { plane(v, now); time(v, now); environments(v, now); say(v, now); fill(now); },
  });

  const kept = (w, {alpha}) => w[0] / odds(alpha);
  function ground(c, v, cells) { // a map's cells, dark to bright
    c.clearRect(0, 0, c.canvas.width, c.canvas.height);
    c.fillStyle = v.colour("edge"); c.fillRect(LEFT, TOP, WIDE, HIGH);
    const dx = WIDE / CELLS, dy = HIGH / CELLS;
    for (const [key, part] of cells) {
      const [i, j] = key.split(",").map(Number);
      c.fillStyle = viridis(part); c.fillRect(LEFT + i * dx, TOP + HIGH - (j + 1) * dy, dx + 0.5, dy + 0.5);
    }
    c.font = "27px system-ui";
  }
  const place = ([lo, hi], [low, high]) => [x => LEFT + WIDE * (x - lo) / (hi - lo), y => TOP + HIGH * (1 - (y - low) / (high - low))];
  function words(c, v, list) { c.fillStyle = v.colour("ink"); for (const [text, x, y, align] of list) { c.textAlign = align; c.fillText(text, x, y); } }
  function mark(c, x, y, full) { for (const [width, colour] of [[8, "#fff"], [3, "#000"]]) { c.lineWidth = width; c.strokeStyle = colour; c.beginPath(); c.arc(x, y, 11, 0, 7); c.stroke(); if (full && width < 8) { c.fillStyle = "#000"; c.fill(); } } }

  function plane(v, {start, path, risk}) {
    const canvas = v.panels[0], c = canvas.getContext("2d"), [X, Y] = place(A, B), last = path[path.length - 1];
    ground(c, v, basins);
    const line = (points, width) => { for (const [w, colour] of [[width + 4, "#fff"], [width, "#000"]]) { c.lineWidth = w; c.strokeStyle = colour; c.beginPath(); for (const [x, y] of points) c.lineTo(X(x), Y(y)); c.stroke(); } };
    c.save(); c.beginPath(); c.rect(LEFT, TOP, WIDE, HIGH); c.clip();
    line([[0, 0], ...risk], 2); line([start, ...path], 5); c.restore();
    mark(c, X(start[0]), Y(start[1])); mark(c, X(last[0]), Y(Math.max(last[1], 0)), true);
    words(c, v, [["0", X(0), TOP + HIGH + 30, "center"], ["1", X(1), TOP + HIGH + 30, "center"], ["a", LEFT + WIDE / 2, canvas.height - 8, "center"], ["0", LEFT - 8, Y(0), "right"], ["1", LEFT - 8, Y(1) + 9, "right"], ["b", LEFT - 8, Y(1.5) + 9, "right"], ["2", LEFT - 8, Y(2) + 9, "right"]]);
    canvas.setAttribute("aria-label", `Plane of the two features. From a = ${short(+start[0].toFixed(3))}, b = ${short(+start[1].toFixed(3))} the penalty leads to a = ${short(+last[0].toFixed(3))}, b = ${short(+last[1].toFixed(3))}.`);
  }

  function time(v, {alpha, path}) {
    const top = Math.max(odds(alpha), ...path.flat()) * 1.08, a = axes({x: T, y: [0, top], logx: true, xlabel: "time under the penalty", ylabel: "feature"}), last = path[path.length - 1];
    const curve = k => TIMES.map((t, i) => [t, path[i][k]]);
    v.svg(1, a.frame() + a.line([[T[0], odds(alpha)], [T[1], odds(alpha)]], {colour: "soft", width: 1.5, dash: "2 3"}) + a.line(curve(1), {colour: "noise", width: 2.5, dash: "6 3"}) + a.line(curve(0), {colour: "signal", width: 3.5}),
      `Under the penalty the invariant feature ends at ${short(+last[0].toFixed(3))} of ${short(odds(alpha))}, the spurious one at ${short(+last[1].toFixed(3))}.`);
  }

  function environments(v, {betas}) {
    const canvas = v.panels[2], c = canvas.getContext("2d"), [X, Y] = place(BETA, BETA);
    ground(c, v, pairs); mark(c, X(betas[0]), Y(betas[1]));
    words(c, v, [["0.1", X(0.1), TOP + HIGH + 30, "center"], ["0.4", X(0.4), TOP + HIGH + 30, "center"], ["β₁", LEFT + WIDE / 2, canvas.height - 8, "center"], ["0.1", LEFT - 8, Y(0.1) + 9, "right"], ["β₂", LEFT - 8, Y(0.25) + 9, "right"], ["0.4", LEFT - 8, Y(0.4) + 9, "right"]]);
    canvas.setAttribute("aria-label", `Map over the two environments. ${pairs.size} of ${CELLS ** 2} cells are known. The present pair is ${short(betas[0])} and ${short(betas[1])}.`);
  }

  function say(v, {start, path, alpha, betas, penalty}) {
    const last = path[path.length - 1], part = last[0] / odds(alpha), name = penalty === "irm" ? "IRMv1" : "VREx", close = Math.abs(betas[0] - betas[1]) < 1e-9;
    const verdict = part > 0.5 ? last[1] < 0.5 * odds((betas[0] + betas[1]) / 2) ? "It finds the invariant feature and drops most of the spurious one." : "It keeps both features." : "It unlearns what was there.";
    v.say(`${name} leads from a = ${short(+start[0].toFixed(2))}, b = ${short(+start[1].toFixed(2))} to a = ${short(+last[0].toFixed(3))}, b = ${short(+last[1].toFixed(3))}: ${Math.round(100 * part)} % of the invariant feature. ` +
      (close ? "The environments are alike, so nothing tells the two features apart." : verdict));
  }

  function fill(now) { // both maps, a cell after the other, in slices that leave the page responsive
    const token = ++filling, order = [];
    for (let k = 0; k < CELLS ** 2; k++) order.push(k * 149 % CELLS ** 2); // all over the map from the start
    const cell = ([lo, hi], i) => lo + (hi - lo) * (i + 0.5) / CELLS, todo = [];
    for (const k of order) for (const map of [basins, pairs]) if (!map.has(k % CELLS + "," + (k / CELLS | 0))) todo.push([map, k % CELLS, k / CELLS | 0]);
    const slice = () => {
      if (token !== filling || !box.isConnected) return;
      const until = performance.now() + 20;
      while (todo.length && performance.now() < until) {
        const [map, i, j] = todo.shift();
        if (map === basins) map.set(i + "," + j, kept(now.plane.end([cell(A, i), cell(B, j)]), now));
        else { const one = new Plane({...now, betas: [cell(BETA, i), cell(BETA, j)]}); map.set(i + "," + j, kept(one.end(startOf({start: now.from}, one)), now)); }
      }
      plane(view, now); environments(view, now);
      if (todo.length) setTimeout(slice, 0); else box.dataset.filled = basins.size + pairs.size;
    };
    if (todo.length) { delete box.dataset.filled; setTimeout(slice, 0); }
  }

  const within = (x, [lo, hi]) => Math.min(Math.max(x, lo), hi);
  function at(canvas, e) {
    const q = canvas.getBoundingClientRect(), zoom = canvas.width / q.width;
    return [((e.clientX - q.left) * zoom - LEFT) / WIDE, 1 - ((e.clientY - q.top) * zoom - TOP) / HIGH];
  }
  const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
  const begin = (a, b) => { own = [within(a, A), within(b, B)]; view.set("start", "own"); view.refresh(); };
  const pair = (x, y) => { view.set("beta_1", within(x, BETA)); view.set("beta_2", within(y, BETA)); view.refresh(); };
  view.panels[0].onclick = e => { const [x, y] = at(view.panels[0], e); begin(A[0] + (A[1] - A[0]) * x, B[0] + (B[1] - B[0]) * y); };
  view.panels[2].onclick = e => { const [x, y] = at(view.panels[2], e); pair(BETA[0] + (BETA[1] - BETA[0]) * x, BETA[0] + (BETA[1] - BETA[0]) * y); };
  view.panels[0].onkeydown = e => {
    const move = step[e.key], s = view.values(), from = move && startOf(s, new Plane(setting(s)));
    if (move) { e.preventDefault(); begin(from[0] + 0.05 * move[0], from[1] + 0.05 * move[1]); }
  };
  view.panels[2].onkeydown = e => {
    const move = step[e.key], s = view.values();
    if (move) { e.preventDefault(); pair(s.beta_1 + 0.02 * move[0], s.beta_2 + 0.02 * move[1]); }
  };
  return view;
}

live.environments = {Plane, mount};
})(globalThis.flbookLive);
