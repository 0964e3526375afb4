/* Two learned features below attention: drag them, and see the rungs of the loss and what gradient flow makes of it.

   Inputs are angles x, the true features cos x and cos 2x, and the learned ones mix them with cos 3x and cos 4x. Formulas, all exact:
   flbook/lectures/in_context_learning/attention_landscape/two_features.py and short_prompts.py. */
(live => {
"use strict";
const {short, axes, field: {W, H: HEIGHT}} = live;

// ---- moments in the basis √2 cos jx, j = 1 ... 4: true features are half the square of the first two, and K weighs with |f|²
const hit = m => (m === 2 || m === 4) / 4, M = [0.5, 0.5, 0, 0];
const K = [1, 2, 3, 4].map(i => [1, 2, 3, 4].map(j => (i === j) + hit(i + j) + hit(Math.abs(i - j))));
const times = (P, Q) => P.map(row => Q[0].map((_, j) => row.reduce((sum, v, i) => sum + v * Q[i][j], 0)));
const turned = P => P[0].map((_, j) => P.map(row => row[j]));
const plus = (...terms) => terms[0][1].map((row, i) => row.map((_, j) => terms.reduce((sum, [c, P]) => sum + c * P[i][j], 0)));
function inverse([[a, b], [c, d]], raise = 1e-12) { // two alike features have none
  const det = (a + raise) * (d + raise) - b * c;
  return [[(d + raise) / det, -b / det], [-c / det, (a + raise) / det]];
}

/* Loss at the best attention for a prompt of n examples, and its gradient in the features: rows of H, in the basis. */
function landscape(H, n) {
  const share = 1 / n, T = turned(H), S = times(H, T), HM = H.map(row => row.map((v, j) => v * M[j])), HK = times(H, K), B = times(HM, T);
  const own = inverse(S), A = plus([1 - share, B], [share, times(HK, T)]);
  const gamma = n === Infinity ? own : times(times(inverse(A), B), own), gammaT = turned(gamma), G = times(B, gamma);
  const read = times(times(gamma, S), gammaT);
  const gradient = plus([-1, times(plus([1, gamma], [1, gammaT]), HM)], [1 - share, times(read, HM)], [share, times(read, HK)], [1, times(times(gammaT, times(A, gamma)), H)]);
  return {loss: (1 - G[0][0] - G[1][1]) / 2, gradient};
}
function flow(H, n, dt, steps) { // by the midpoint rule; where the loss would rise, as for features nearly alike, steps are shorter
  const losses = [], path = [];
  let now = landscape(H, n), size = dt;
  for (let t = 0; t <= steps; t++) {
    losses.push(now.loss);
    path.push(H);
    for (let left = dt; left > 1e-9 * dt;) {
      const step = Math.min(size, left), next = plus([1, H], [-step, landscape(plus([1, H], [-step / 2, now.gradient]), n).gradient]), after = landscape(next, n);
      const falls = after.loss <= now.loss + 1e-9;
      if (falls || step < dt / 32) [H, now, left] = [next, after, left - step];
      size = Math.min(falls ? 2 * step : Math.max(step / 2, dt / 64), dt);
    }
  }
  return {losses, path};
}
/* The features at points of the unit disk: what lies inside the circle is missing, and made up by a useless function of their own. */
function features([[a, b], [c, d]]) {
  const rest = (u, v) => Math.sqrt(Math.max(1 - u * u - v * v, 0));
  return [[a, b, 0, rest(a, b)], [c, d, rest(c, d), 0]];
}

// ---- the figure
const DT = 0.05, STEPS = 800, CX = 130, CY = 92, R = 76, PHONE = 26;
const COLOURS = ["signal", "noise"], DASHES = ["", "6 3"], RUNGS = [0, 0.25, 0.5];
const place = (r, degrees) => [r * Math.cos(degrees * Math.PI / 180), r * Math.sin(degrees * Math.PI / 180)];

function mount(box, given = {}) {
  const first = {r1: 0.97, a1: 10, r2: 0.04, a2: 70, n: 4096, ...given}, MOST = 12, examples = power => power < MOST ? 2 ** power : Infinity;
  let held = -1;
  const known = name => ({name, kind: "range", label: `feature ${name[1]} knows`, min: 0, max: 1, step: 0.01, value: first[name]});
  const angle = (name, rest) => ({name, rest, kind: "range", label: `direction of ${name[1]}`, min: 0, max: 360, step: 1, value: first[name], show: v => `${v}°`});

  const view = live.figure(box, {
    label: "Live figure: two learned features, the ladder of losses, and gradient flow",
    controls: [known("r1"), known("r2"), angle("a2", false), 
      {name: "n", kind: "range", label: "examples n", min: 2, max: MOST, step: 1, value: Math.min(Math.round(Math.log2(first.n)), MOST), show: v => v < MOST ? String(2 ** v) : "∞"}, angle("a1", true)],
    panels: [
      {caption: 'What two learned features (<b style="color:var(--signal)">1</b>, <b style="color:var(--noise)">2</b>) have of the true ones: at the circle all, in the middle nothing. Drag them. Lines: gradient flow.'},
      {caption: "The loss along the flow. Dotted: the rungs 0, ¼, ½."},
    ],
    compute: v => {
      const n = examples(v.n), dots = [place(v.r1, v.a1), place(v.r2, v.a2)];
      return {n, dots, ...flow(features(dots), n, DT, STEPS)};
    },
    draw: (v, now) => { disk(v, now); losses(v, now); say(v, now); },
  });

  function disk(v, {dots, path}) {
    const at = ([x, y]) => [CX + R * x, CY - R * y], d = points => "M" + points.map(p => at(p).map(u => u.toFixed(1)).join(" ")).join("L");
    const words = (x, y, s) => `<text x="${x}" y="${y}" text-anchor="middle">${s}</text>`;
    let body = `<circle cx="${CX}" cy="${CY}" r="${R}" fill="none" stroke="var(--soft)"/><path d="M${CX - R} ${CY}H${CX + R}M${CX} ${CY - R}V${CY + R}" stroke="var(--edge)"/>` +
      words(CX + R + 14, CY + 5, "f₁") + words(CX, CY - R - 4, "f₂");
    [0, 1].forEach(j => {
      const trail = path.filter((_, t) => t % 8 === 0).map(H => { const size = Math.hypot(...H[j]); return [H[j][0] / size, H[j][1] / size]; });
      body += `<path d="${d(trail)}" fill="none" stroke="var(--${COLOURS[j]})" stroke-width="2" stroke-dasharray="${DASHES[j]}"/>`;
    });
    [0, 1].forEach(j => {
      const [x, y] = at(dots[j]);
      body += `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="9" fill="var(--${COLOURS[j]})" stroke="var(--ground)" style="cursor:grab"/>` +
        `<text x="${x.toFixed(1)}" y="${(y + 4.5).toFixed(1)}" text-anchor="middle" pointer-events="none" style="fill:var(--ground);font-weight:700">${j + 1}</text>`;
    });
    v.svg(0, body, `A disk with two features: of the true ones feature 1 has ${short(Math.hypot(...dots[0]))}, feature 2 has ${short(Math.hypot(...dots[1]))}.`);
  }
  function losses(v, now) {
    const a = axes({x: [0, DT * STEPS], y: [0, 0.55], xlabel: "time", ylabel: "loss", yticks: [[0, "0"], [0.25, "¼"], [0.5, "½"]]});
    v.svg(1, a.frame() + RUNGS.map(y => a.line([[0, y], [DT * STEPS, y]], {colour: "soft", width: 1.5, dash: "2 3"})).join("") +
      a.line(now.losses.filter((_, t) => t % 4 === 0).map((y, t) => [4 * DT * t, y]), {colour: "test", width: 2.5}), `The loss falls from ${short(now.losses[0])} to ${short(now.losses[STEPS])}.`);
  }
  function say(v, {losses, n, path}) {
    const [from, to] = [losses[0], losses[STEPS]], near = RUNGS.reduce((best, y) => Math.abs(y - from) < Math.abs(best - from) ? y : best), name = {0: "0", 0.25: "¼", 0.5: "½"};
    const left = near ? losses.findIndex(y => y < near - 0.05) : -1, {gradient} = landscape(path[STEPS], n), moving = Math.hypot(...gradient.flat()) > 0.005;
    const start = Math.abs(from - near) < 0.03 && near ? `The loss is ${short(+from.toFixed(3))}, beside the rung ${name[near]}. ` : `The loss is ${short(+from.toFixed(3))}. `;
    v.say(start + (left > 0 ? `The flow leaves ${Math.abs(from - near) < 0.03 ? "it" : "the rung " + name[near]} after the time ${short(+(left * DT).toPrecision(2))} and is at ${short(+to.toFixed(3))} in the end.` : `The flow is at ${short(+to.toFixed(3))} in the end.`) +
      (to > 0.2 ? moving ? " It is still on its way." : n === Infinity ? " There it waits, on the rung." : " There it rests: on a short prompt the saddle has no way down of second order." : " Both features are learned."));
  }

  // ---- dragging: the nearer of the two follows the pointer, and its sliders with it
  const panel = view.panels[0];
  const toDisk = e => { const q = panel.getBoundingClientRect(); return [((e.clientX - q.left) / q.width * W - CX) / R, (CY - (e.clientY - q.top) / q.height * HEIGHT) / R]; };
  const nearest = ([x, y]) => {
    const v = view.values(), away = [place(v.r1, v.a1), place(v.r2, v.a2)].map(([a, b]) => R * Math.hypot(a - x, b - y));
    return Math.min(...away) < PHONE ? +(away[1] < away[0]) : -1;
  };
  const pull = e => {
    const [x, y] = toDisk(e), j = held + 1;
    view.set(`r${j}`, Math.min(Math.hypot(x, y), 1).toFixed(2));
    view.set(`a${j}`, Math.round((Math.atan2(y, x) * 180 / Math.PI + 360) % 360));
    view.refresh();
  };
  panel.onpointerdown = e => { held = nearest(toDisk(e)); if (held >= 0) { e.preventDefault(); panel.setPointerCapture(e.pointerId); } };
  panel.onpointermove = e => { if (held >= 0) pull(e); };
  panel.onpointerup = panel.onpointercancel = () => { held = -1; };
  panel.ontouchstart = e => { if (nearest(toDisk(e.touches[0])) >= 0) e.preventDefault(); }; // elsewhere a finger scrolls
}

live.ladder = {landscape, flow, features, mount};
})(globalThis.flbookLive);
