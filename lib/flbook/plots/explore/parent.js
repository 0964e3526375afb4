/* Contexts in which every token is drawn from the row of the one before: the slope of the first gradient of attention.

   Formulas: flbook/lectures/in_context_learning/induction/causal_chains.py and parent_gradient.py. */
(live => {
"use strict";
const {random, short, axes, field} = live;
const T = 12; // places of a context

function transitions(S, rho, {uniform}) { // rows uniform on the simplex, sticky
  return Array.from({length: S}, (_, s) => {
    const row = Array.from({length: S}, () => -Math.log(1 - uniform())), total = row.reduce((sum, x) => sum + x, 0);
    return row.map((x, t) => (1 - rho) * x / total + rho * (s === t));
  });
}
function stationary(pi) { // by steps of the matrix and its squares
  const S = pi.length;
  let power = pi;
  for (let k = 0; k < 12; k++) power = power.map(row => Array.from({length: S}, (_, t) => row.reduce((sum, x, s) => sum + x * power[s][t], 0)));
  return power[0];
}
function pick(law, u) {
  let s = 0;
  for (let below = law[0]; s < law.length - 1 && u > below; below += law[++s]);
  return s;
}
function context(pi, {uniform}) {
  const tokens = [pick(stationary(pi), uniform())];
  while (tokens.length < T) tokens.push(pick(pi[tokens[tokens.length - 1]], uniform()));
  const query = Math.min(pi.length - 1, Math.floor(uniform() * pi.length));
  return {tokens, query, next: pick(pi[query], uniform())};
}
function add(g, {tokens, query, next}, weight) { // to the table of slopes, by rows
  const often = tokens.filter(s => s === next).length / T;
  if (!often) return; // the context lacks the next token
  tokens.forEach((s, i) => {
    const gain = weight * ((s === next) / often - 1);
    for (let j = 0; j <= i; j++) if (tokens[j] === query) g[i * T + j] += gain;
  });
}
function slopes(S, N, rho, seed) {
  const stream = random(seed, "contexts"), g = new Float64Array(T * T);
  for (let k = 0; k < N; k++) add(g, context(transitions(S, rho, stream), stream), 1 / N);
  return g;
}
function found(g) { // of each row from the second on, the place with the largest slope
  return Array.from({length: T - 1}, (_, k) => {
    const row = g.subarray((k + 1) * T, (k + 1) * T + k + 2);
    return row.indexOf(Math.max(...row));
  });
}
function byLag(g, lag) {
  let sum = 0;
  for (let i = lag; i < T; i++) sum += g[i * T + i - lag];
  return sum / (T - lag);
}

// ---- the figure
function mount(box, given = {}) {
  const first = {S: 3, N: 300, rho: 0, seed: 0, ...given};
  let seed = first.seed;
  live.figure(box, {
    label: "Live figure: where the first gradient of attention points",
    controls: [
      {name: "S", kind: "range", label: "tokens S", min: 2, max: 10, step: 1, value: first.S},
      {name: "N", kind: "range", label: "contexts N", min: 10, max: 10000, step: 0.125, value: first.N, log: true, show: v => short(Math.round(v))},
      {name: "rho", kind: "range", label: "stickiness ρ", min: 0, max: 0.6, step: 0.02, value: first.rho},
      {name: "again", rest: true, kind: "button", label: "Other contexts", act: view => { seed += 1; view.refresh(); }},
    ],
    panels: [
      {caption: "Slope of place i (down) for j (across), red if positive. Rings: parents; dots: the largest of a row."},
      {caption: "Mean slope by lag: 0 is the place itself, 1 the parent."},
    ],
    compute: v => {
      const N = Math.round(v.N), g = slopes(v.S, N, v.rho, seed);
      return {S: v.S, N, rho: v.rho, g, rows: found(g), lags: [0, 1, 2, 3, 4, 5].map(lag => v.S * byLag(g, lag))};
    },
    draw(view, result) {
      table(view, result);
      bars(view, result);
      say(view, result);
    },
  });
  function table(view, {g, rows}) {
    const side = field.HIGH / T, left = field.LEFT + (field.WIDE - field.HIGH) / 2, most = Math.max(...g.map(Math.abs)) || 1, cells = [];
    for (let i = 0; i < T; i++) for (let j = 0; j <= i; j++) {
      const x = g[i * T + j] / most, colour = x > 0 ? "noise" : "signal";
      cells.push(`<rect x="${(left + j * side).toFixed(1)}" y="${(field.TOP + i * side).toFixed(1)}" width="${side.toFixed(1)}" height="${side.toFixed(1)}" fill="var(--${colour})" opacity="${Math.abs(x).toFixed(3)}"/>`);
    }
    const at = (i, j) => `cx="${(left + (j + 0.5) * side).toFixed(1)}" cy="${(field.TOP + (i + 0.5) * side).toFixed(1)}"`;
    const rings = rows.map((_, k) => `<circle ${at(k + 1, k)} r="4.6" fill="none" stroke="var(--ink)" stroke-width="1.3"/>`).join("");
    const dots = rows.map((j, k) => `<circle ${at(k + 1, j)} r="2" fill="var(--ink)"/>`).join("");
    const right = rows.filter((j, k) => j === k).length;
    view.svg(0, cells.join("") + rings + dots, `Slopes of ${T} places; in ${right} of ${rows.length} rows the largest is at the parent.`);
  }
  function bars(view, {lags}) {
    const top = Math.max(0.1, ...lags) * 1.1, low = Math.min(0, ...lags) * 1.1, a = axes({x: [-0.6, 5.6], y: [low, top], xlabel: "lag", ylabel: "slope × S"});
    const one = (h, lag) => `<path d="M${a.px(lag).toFixed(1)} ${a.py(0).toFixed(1)}V${a.py(h).toFixed(1)}" stroke="var(--${lag === 1 ? "signal" : "soft"})" stroke-width="22"/>`;
    view.svg(1, a.frame() + lags.map(one).join("") + a.line([[-0.6, 0], [5.6, 0]], {colour: "soft", width: 1}), `Mean slopes by lag: ${lags.map(short).join(", ")}.`);
  }
  function say(view, {rho, rows, lags}) {
    const right = rows.filter((j, k) => j === k).length, self = rows.filter((j, k) => j === k + 1).length;
    view.say(`The gradient points to the parent in ${right} of ${rows.length} rows` + (self ? `, to the place itself in ${self}. ` : ". ") + (rho > 0 && lags[0] > lags[1] ? "On average a sticky place looks at itself." : "On average the parent leads."));
  }
}

live.parent = {transitions, stationary, pick, context, add, slopes, found, byLag, mount};
})(globalThis.flbookLive);
