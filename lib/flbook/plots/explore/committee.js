/* A committee of students taught by a committee of two: the equations that SGD follows in high dimension.

   Students that are alike but for a small difference wait on a plateau until each takes a teacher. Names and formulas are those of
   flbook/lectures/representation/committee/order_parameters.py: C is the covariance of all fields, the students' before the teachers'. */
(live => {
"use strict";
const {short, axes} = live;
const M = 2, LINEAR = 1 / 3 - 1 / Math.PI, LEFT_BELOW = 0.005; // teachers; the best linear model's risk; below this a run has left the plateau
const GROWTH = 4 / (5 * Math.PI * Math.sqrt(15)); // of a difference, over the step size, where steps are small

// ---- the equations; a state is {Q, R}, arrays of rows
const signs = K => Array.from({length: K + M}, (_, p) => p < K ? 1 : -1);
function covariance({Q, R}) {
  const K = Q.length;
  return Array.from({length: K + M}, (_, p) => Array.from({length: K + M}, (_, q) =>
    p < K && q < K ? Q[p][q] : p < K ? R[p][q - K] : q < K ? R[q][p - K] : +(p === q)));
}
const sum = (count, term) => { let total = 0; for (let p = 0; p < count; p++) total += term(p); return total; };

function risk(state) {
  const C = covariance(state), s = signs(state.Q.length), F = s.length;
  return sum(F, p => sum(F, q => s[p] * s[q] * Math.asin(C[p][q] / Math.sqrt((1 + C[p][p]) * (1 + C[q][q]))))) / Math.PI;
}

/* Derivatives of Q and R in samples over dimension. */
function rate(state, lr, noise) {
  const C = covariance(state), K = state.Q.length, s = signs(K), F = s.length, one = C.map((row, p) => 1 + row[p]);
  const drift = Array.from({length: K}, (_, i) => Array.from({length: F}, (_, j) => -lr * 2 / Math.PI *
    sum(F, p => s[p] * (C[j][p] * one[i] - C[i][j] * C[i][p]) / (one[i] * Math.sqrt(one[i] * one[p] - C[i][p] ** 2)))));
  const diffusion = (i, k) => { // slopes turn the fields' law into a Gaussian one with another covariance, `cut`
    const det = one[i] * one[k] - C[i][k] ** 2;
    const cut = (p, q) => C[p][q] - (C[i][p] * C[i][q] * one[k] + C[k][p] * C[k][q] * one[i] - C[i][k] * (C[i][p] * C[k][q] + C[i][q] * C[k][p])) / det;
    const own = s.map((_, p) => 1 + cut(p, p));
    const square = 2 / Math.PI * sum(F, p => sum(F, q => s[p] * s[q] * Math.asin(cut(p, q) / Math.sqrt(own[p] * own[q]))));
    return lr ** 2 * 2 / Math.PI / Math.sqrt(det) * (square + noise ** 2);
  };
  return {Q: drift.map((row, i) => Array.from({length: K}, (_, k) => row[k] + drift[k][i] + diffusion(i, k))),
          R: drift.map(row => row.slice(K))};
}

const flat = ({Q, R}) => [...Q.flat(), ...R.flat()];
const shaped = (y, K) => ({Q: Array.from({length: K}, (_, i) => y.slice(i * K, i * K + K)), R: Array.from({length: K}, (_, i) => y.slice(K * K + i * M, K * K + i * M + M))});

/* Dormand and Prince's pair of order 5 and 4, with steps as long as the tolerance allows; states at the times `at`, which begin at 0. */
const TABLE = [[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656], [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]];
const GAP = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]; // order 5 less order 4
function path(start, lr, noise, at, tolerance = 1e-8) {
  const K = start.Q.length, f = y => flat(rate(shaped(y, K), lr, noise)), found = [start];
  let y = flat(start), t = 0, h = 0.05;
  for (const end of at.slice(1)) {
    while (t < end) {
      const step = Math.min(h, end - t), k = [];
      const mix = row => y.map((v, n) => v + step * row.reduce((all, c, j) => all + c * k[j][n], 0));
      for (const row of TABLE) k.push(f(mix(row)));
      const next = mix(TABLE[6]);
      const off = Math.max(...y.map((v, n) => Math.abs(step * GAP.reduce((all, c, j) => all + c * k[j][n], 0)) / (tolerance * (1e-3 + Math.abs(v)))));
      if (off <= 1) { y = next; t += step; }
      if (off > 1 || step === h) h = step * Math.min(5, Math.max(0.2, 0.9 * off ** -0.2)); // a step cut short by `end` says nothing
    }
    found.push(shaped(y, K));
  }
  return found;
}

/* K students that are alike but for a difference: each has that much more of one teacher, a third student a little less of it than the first. */
const beginning = (K, difference) => ({
  Q: Array.from({length: K}, (_, i) => Array.from({length: K}, (_, k) => i === k ? 0.2 : 0.02)),
  R: Array.from({length: K}, (_, i) => Array.from({length: M}, (_, m) => 0.05 + (i % M === m ? difference * (1 - 0.3 * Math.floor(i / M)) : 0))),
});

// ---- the figure
function leaves(risks) { // when the risk first falls below the level, on straight lines of its logarithm; null where it does not
  const j = risks.findIndex(r => r < LEFT_BELOW);
  return j < 1 ? null : AT[j - 1] + (AT[j] - AT[j - 1]) * Math.log(risks[j - 1] / LEFT_BELOW) / Math.log(risks[j - 1] / Math.max(risks[j], 1e-12));
}
const END = 3000, AT = [0, ...Array.from({length: 140}, (_, i) => END ** (i / 139))], COLOURS = ["signal", "noise", "test", "network"];
function mount(box, given = {}) {
  const first = {difference: 1e-4, K: 2, lr: 0.5, noise: 0, ...given};
  const view = live.figure(box, {
    label: "Live figure: students on a plateau, and how they part",
    controls: [
      {name: "difference", kind: "range", label: "difference at the start", min: 1e-8, max: 0.1, step: 0.1, log: true, value: first.difference, show: x => short(+x.toPrecision(2))},
      {name: "K", kind: "range", label: "students K", min: 1, max: 4, step: 1, value: first.K},
      {name: "lr", kind: "range", label: "step size η", min: 0.1, max: 2, step: 0.02, log: true, value: first.lr, show: x => short(+x.toPrecision(2))},
      {name: "noise", rest: true, kind: "range", label: "label noise σ", min: 0, max: 0.5, step: 0.05, value: first.noise},
      {name: "t", kind: "range", late: true, label: "at α, samples over dimension", min: 0, max: AT.length - 1, step: 1, value: AT.length - 1, show: i => short(+AT[i].toPrecision(3))},
    ],
    panels: [
      {caption: "Risk over samples per dimension. Dotted: the best linear model."},
      {caption: `Cosines of students with <b>teacher 1</b> (lines) and <b>teacher 2</b> (dashes). Students: ${COLOURS.map((c, i) => `<b style="color:var(--${c})">${i + 1}</b>`).join(" ")}`},
      {caption: "The plane of the teachers (crosses): where the students’ projections go, up to the time chosen."},
    ],
    only: ["t"],
    compute: ({difference, K, lr, noise}) => {
      const states = path(beginning(K, difference), lr, noise, AT);
      return {states, risks: states.map(risk), lr, K, noise, difference};
    },
    draw: (v, now, {t}) => { falls(v, now, t); cosines(v, now, t); plane(v, now, t); say(v, now); },
  });

  const cosine = ({Q, R}, i, m) => R[i][m] / Math.sqrt(Q[i][i]);
  const over = (now, value) => AT.map((a, j) => [a, value(now.states[j], j)]).slice(1);
  const SPAN = {x: [1, END], logx: true, xlabel: "samples over dimension α"};

  function falls(v, now, t) {
    const a = axes({...SPAN, y: [1e-5, 1], logy: true, ylabel: "risk ε"});
    v.svg(0, a.frame() + a.upright(Math.max(1, AT[t]), {dash: "2 3"}) + a.line([[1, LINEAR], [END, LINEAR]], {colour: "soft", width: 1.5, dash: "2 3"}) +
      a.line(over(now, (_, j) => Math.max(now.risks[j], 1e-5)), {colour: "test", width: 2.5}),
      `The risk falls from ${short(now.risks[0])} to ${short(now.risks[AT.length - 1])} at 3000 samples per dimension.`);
  }

  function cosines(v, now, t) {
    const a = axes({...SPAN, y: [-0.2, 1.05], ylabel: "cosine"}), lines = [];
    for (let i = 0; i < now.K; i++) for (let m = 0; m < M; m++) {
      lines.push(a.line(over(now, state => cosine(state, i, m)), {colour: COLOURS[i], width: m ? 1.8 : 2.6, dash: m ? "6 3" : ""}));
    }
    const last = now.states[AT.length - 1], words = last.R.map((_, i) => `student ${i + 1} has ${short(cosine(last, i, 0))} and ${short(cosine(last, i, 1))}`);
    v.svg(1, a.frame() + a.upright(Math.max(1, AT[t]), {dash: "2 3"}) + lines.join(""), `Cosines with the two teachers at the end: ${words.join(", ")}.`);
  }

  function plane(v, now, t) { // one unit is as long upwards as to the right
    const tall = 1.55, wide = tall * live.field.WIDE / live.field.HIGH, a = axes({x: [0.5 - wide / 2, 0.5 + wide / 2], y: [-0.25, tall - 0.25], xlabel: "along teacher 1", ylabel: "teacher 2", xticks: [[0, "0"], [1, "1"]], yticks: [[0, "0"], [1, "1"]]});
    const lines = [], dots = [];
    for (let i = 0; i < now.K; i++) {
      const way = now.states.slice(0, t + 1).map(({R}) => R[i]), [x, y] = way[way.length - 1];
      lines.push(a.line(way, {colour: COLOURS[i], width: 2}));
      dots.push(`<circle cx="${a.px(x).toFixed(1)}" cy="${a.py(y).toFixed(1)}" r="${6.5 - i}" fill="var(--${COLOURS[i]})" stroke="var(--ground)"/>`);
    }
    v.svg(2, a.frame() + a.line([[0, 0], [0.9, 0.9]], {colour: "edge", width: 1}) + lines.join("") + a.crosses([[1, 0], [0, 1]], {colour: "ink"}) + dots.join(""),
      `At ${short(+AT[t].toPrecision(3))} samples per dimension: ${now.states[t].R.map((row, i) => `student ${i + 1} at (${row.map(x => short(+x.toPrecision(2))).join(", ")})`).join("; ")}.`);
  }

  function say(v, {states, risks, lr, K, noise}) {
    const last = states[AT.length - 1], left = leaves(risks), final = risks[AT.length - 1], end = final < 1e-5 ? "below 10⁻⁵" : short(+final.toPrecision(2));
    const own = last.R.map((_, i) => Math.max(cosine(last, i, 0), cosine(last, i, 1))).filter(c => c > 0.95).length;
    const ended = K === 1 ? `One student cannot take two teachers: it stays near their sum, at the risk ${end}; the best linear model has ${short(LINEAR)}.`
      : left === null ? `After ${END} samples per dimension the risk is still ${end}; the best linear model has ${short(LINEAR)}.`
      : `The students have left the plateau after ${short(Math.round(left))} samples per dimension; in the end the risk is ${end}, and ${own} of ${K} students have a teacher's direction.`;
    const more = K === 2 && !noise ? ` For small steps, a difference ten times smaller waits for ${short(Math.round(Math.LN10 / (GROWTH * lr)))} samples per dimension longer.` : "";
    v.say(ended + more);
  }
  return view;
}

live.committee = {rate, risk, path, beginning, mount};
})(globalThis.flbookLive);
