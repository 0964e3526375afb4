/* One mode of two layers beside the edge of stability: an oscillation that ends as far below the edge as it began above.

   Formulas: flbook/lectures/training_strategies/saddles_and_edge/unbalanced_pair.py. */
(live => {
"use strict";
const {short, axes} = live;
const STEPS = 600;

/* Step size 1: plus and minus are the squared lengths of a + b and a - b, so S is half their sum and f a quarter of their difference.
   A drift adds to S at every step and leaves f. */
function train(c, height, residual, drift, steps) {
  let plus = 2 + height + 2 * (c - residual), minus = 2 + height - 2 * (c - residual);
  const h = [], zeta = [];
  for (let t = 0; t <= steps; t++) {
    const z = c - (plus - minus) / 4;
    h.push((plus + minus) / 2 - 2);
    zeta.push(z);
    plus = plus * (1 + z) ** 2 + drift;
    minus = minus * (1 - z) ** 2 + drift;
  }
  return {h, zeta};
}
const end = (height, c) => -height - 2 / 3 * (1 - 4 * c * c) / (1 - c * c) * height * height;
const mean = ({h, zeta}, c) => h.map((v, t) => v + 2 * c * zeta[t]); // of two steps, to first order

// ---- the figure
function mount(box, given = {}) {
  const first = {c: 0.3, height: 0.1, drift: 0, residual: -3, ...given};

  function compute({c, height, drift, residual}) {
    const found = train(c, height, 10 ** residual * height, drift, STEPS);
    const scale = Math.sqrt(2 * (1 - c * c)), level = mean(found, c), half = level.slice(STEPS / 2);
    return {c, height, drift, ...found, level, size: found.zeta.map(z => scale * z), late: half.reduce((s, v) => s + v, 0) / half.length};
  }
  live.figure(box, {
    label: "Live figure: sharpness beside the edge of stability",
    controls: [
      {name: "c", kind: "range", label: "step size times strength, c", min: 0.05, max: 0.9, step: 0.05, value: first.c},
      {name: "height", kind: "range", label: "start above the edge, h₀", min: 0.04, max: 0.4, step: 0.02, value: first.height},
      {name: "drift", kind: "range", label: "drift of the sharpness a step", min: 0, max: 0.004, step: 0.0005, value: first.drift},
      {name: "residual", rest: true, kind: "range", label: "first residual over h₀", min: -4, max: -1, step: 1, value: first.residual, show: v => short(10 ** v)},
    ],
    panels: [
      {caption: '<b style="color:var(--signal)">Height over the edge</b> of every step. Dots: <b style="color:var(--noise)">the edge</b>. Dashed: the mirror of the start.'},
      {caption: '<b style="color:var(--signal)">Residual, scaled, and mean height of two steps.</b> Dashed: the circle of theory, without a drift.'},
    ],
    compute,
    draw: (view, now) => { over(view, now); plane(view, now); say(view, now); },
  });

  const clip = (v, top) => Math.min(Math.max(v, -top), top);
  function over(view, {h, height}) {
    const top = Math.max(1.6 * height, 0.1), a = axes({x: [0, STEPS], y: [-top, top], xlabel: "step", ylabel: "height over the edge"});
    view.svg(0, a.frame() + a.line([[0, 0], [STEPS, 0]], {colour: "noise", width: 1.5, dash: "2 2.5"}) + a.line([[0, -height], [STEPS, -height]], {dash: "6 3", width: 1.5}) +
      a.line(h.map((v, t) => [t, clip(v, top)]), {colour: "signal", width: 1.5}),
      `The height over the edge starts at ${short(height)}, and is ${short(+h[STEPS].toFixed(3))} after ${STEPS} steps.`);
  }
  function plane(view, {size, level, height, drift}) {
    const top = Math.max(1.6 * height, 0.1), a = axes({x: [-top, top], y: [-top, top], xlabel: "residual, scaled", ylabel: "mean height"});
    const circle = [...Array(121).keys()].map(k => [height * Math.cos(k * Math.PI / 60), height * Math.sin(k * Math.PI / 60)]);
    const dots = size.map((x, t) => `<circle cx="${a.px(clip(x, top)).toFixed(1)}" cy="${a.py(clip(level[t], top)).toFixed(1)}" r="2" fill="var(--signal)"/>`).join("");
    view.svg(1, a.frame() + dots + (drift ? "" : a.line(circle, {dash: "6 3", width: 1.5})),
      `Steps in the plane of residual and height${drift ? "" : `, beside a circle of radius ${short(height)}`}.`);
  }
  function say(view, {h, c, height, drift, late}) {
    const last = h[STEPS], three = v => short(+v.toFixed(3));
    view.say(drift ? `The drift lifts the sharpness again after each burst: over the second half its mean height is ${three(late)}.`
      : `It starts ${three(height)} above the edge and ends ${three(-last)} below it; to second order theory says ${three(-end(height, c))}.`);
  }
}

live.edge = {train, end, mean, mount};
})(globalThis.flbookLive);
