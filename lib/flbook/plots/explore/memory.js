/* A ball with memory: the smallest model of momentum. One feature a is shared by easy and hard samples, noise is each sample's own.

   Averaged momentum of memory tau = eta/(1 - gamma) rolls the feature down the loss of the easy samples; then feature and noise race for
   the hard ones. Names and formulas are those of flbook/lectures/training_strategies/momentum/coasting.py. */
(live => {
"use strict";
const {short, axes, viridis} = live;
const [LEFT, TOP, WIDE, HIGH] = ["LEFT", "TOP", "WIDE", "HIGH"].map(name => 2 * live.field[name]); // a canvas has two pixels a unit

const sigmoid = z => 1 / (1 + Math.exp(-z)), softplus = z => z > 0 ? z + Math.log1p(Math.exp(-z)) : Math.log1p(Math.exp(z));
const ETA = 0.5, END = 2000, FITTED = 1e-3, KAPPA = 0.7406131; // step size, flow time, easy samples' loss when the ball coasts, offset of the law
const coast = (memory, p) => Math.sqrt(2 * memory * p * Math.LN2) + KAPPA;
const needed = ({beta, p, noise, b}) => { // memory at which the feature overtakes the noise
  const tie = noise * b / ((1 - p) * beta ** 3);
  return Math.max(0, tie - KAPPA) ** 2 / (2 * p * Math.LN2);
};

/* Steps of momentum on (1-p) log(1 + exp(-(beta a)^3 - b^3)) + p log(1 + exp(-a^3 - e^3)), with noise = |xi|^2/n the pull on a sample's own.
   Gives rows at the steps `at`, the last of which ends it. `a` is also the start of the feature, `b` that of either noise. */
function roll({memory, beta, p, noise, a = 0.05, b = 0.05, lr = ETA}, at) {
  const fresh = lr / memory, hard = beta ** 3, rows = [];
  let e = b, va = 0, vb = 0, ve = 0, rest = null;
  for (let t = 0, j = 0; ; t++) {
    const easy = softplus(-(a ** 3) - e ** 3);
    if (rest === null && p * easy < FITTED) rest = a + memory * va;
    if (t === at[j]) { rows.push({step: t, a, b, e, easy, feature: hard * a ** 3, own: b ** 3}); if (++j === at.length) return {rows, rest}; }
    const ge = sigmoid(-(a ** 3) - e ** 3), gh = sigmoid(-hard * a ** 3 - b ** 3);
    va += fresh * (3 * a * a * (p * ge + (1 - p) * hard * gh) - va);
    vb += fresh * (3 * noise * b * b * gh - vb);
    ve += fresh * (3 * noise * e * e * ge - ve);
    a += lr * va; b += lr * vb; e += lr * ve;
  }
}
const shareOf = ({feature, own}) => feature / (feature + own); // of a hard sample's margin

// ---- the figure
const LAST = END / ETA, CELLS = 20, T = [ETA, 1000], B = [0.04, 0.4];
const AT = [...new Set([0, ...Array.from({length: 120}, (_, i) => Math.round(LAST ** (i / 119)))])];
function mount(box, given = {}) {
  const first = {memory: 50, beta: 0.1, seen: 0.05, share: 0.2, ...given};
  const setting = s => ({memory: Math.max(ETA, s.memory), beta: s.beta, p: 1 - s.share, noise: 1 / 30, b: s.seen});
  const plain = memory => memory < 1.001 * ETA;
  let cells = new Map(), drawn = "", filling = 0;

  function compute(s) {
    const now = setting(s), key = [now.p, now.b].join();
    if (key !== drawn) { drawn = key; cells = new Map(); }
    return {...now, ...roll(now, AT), gd: roll({...now, memory: ETA}, AT)};
  }

  const view = live.figure(box, {
    label: "Live figure: a feature that coasts on the memory of momentum",
    controls: [
      {name: "memory", kind: "range", label: "memory τ", min: T[0], max: T[1], step: 0.02, log: true, value: first.memory, show: m => plain(m) ? "none: gradient descent" : short(+m.toPrecision(2))},
      {name: "beta", kind: "range", label: "hard samples’ margin β", min: B[0], max: B[1], step: 0.02, log: true, value: first.beta, show: b => short(+b.toPrecision(2))},
      {name: "seen", kind: "range", label: "noise seen at the start", min: 0.01, max: 0.3, step: 0.02, log: true, value: first.seen, show: b => short(+b.toPrecision(2))},
      {name: "share", rest: true, kind: "range", label: "hard samples", min: 0.05, max: 0.5, step: 0.05, value: first.share, show: q => `${Math.round(100 * q)} %`},
      {name: "t", kind: "range", late: true, label: "at flow time", min: 0, max: AT.length - 1, step: 1, value: AT.length - 1, show: i => short(AT[i] * ETA)},
    ],
    panels: [
      {caption: 'The easy samples’ loss over <b style="color:var(--signal)">the feature a</b>, and the ball up to the time chosen. Ring: gradient descent.'},
      {caption: 'Margin of a hard sample: <b style="color:var(--signal)">from the feature (thick)</b>, <b style="color:var(--noise)">from its own noise (dashes)</b>. Thin grey: the same under gradient descent.'},
      {canvas: true, caption: "Part of a hard sample’s margin that is the feature’s, from dark (0) to bright (1). Dashed: the memory needed, by the law. Click, or use the sliders."},
    ],
    only: ["t"],
    compute,
    draw: (v, now, s) => { valley(v, now, s); race(v, now, s); map(v, now); say(v, now); fill(); },
  });

  function valley(v, {rows, gd, p}, {t}) {
    const i = Math.round(t), right = Math.max(4, 1.08 * rows[i].a), a = axes({x: [0, right], y: [0, p * Math.LN2 * 1.05], xlabel: "feature a", ylabel: "loss"}), V = z => p * softplus(-(z ** 3));
    const dot = ({a: z}, how) => `<circle cx="${a.px(Math.min(z, right)).toFixed(1)}" cy="${(a.py(V(z)) - 5).toFixed(1)}" ${how}/>`;
    const hill = Array.from({length: 81}, (_, k) => right * k / 80).map(z => [z, V(z)]);
    v.svg(0, a.frame() + a.line(hill, {colour: "soft", width: 2}) + rows.slice(0, i).filter((_, k) => k % 3 === 0).map(row => dot(row, 'r="2.5" fill="var(--signal)" opacity=".45"')).join("") +
      dot(rows[i], 'r="6" fill="var(--signal)"') + dot(gd.rows[i], 'r="6" fill="none" stroke="var(--ink)" stroke-width="2"'),
      `At flow time ${short(AT[i] * ETA)} the feature is at ${short(rows[i].a)}, under gradient descent at ${short(gd.rows[i].a)}.`);
  }

  function race(v, {rows, gd}, {t}) {
    const all = [rows, gd.rows].flat().map(q => Math.max(q.feature, q.own)), a = axes({x: [ETA, END], y: [0, Math.max(2, ...all)], logx: true, xlabel: "flow time s", ylabel: "margin"});
    const curve = (list, name) => list.filter(q => q.step).map(q => [q.step * ETA, q[name]]), now = AT[Math.round(t)] * ETA, last = rows[rows.length - 1];
    v.svg(1, a.frame() + (now ? a.upright(now, {dash: "2 3"}) : "") + a.line(curve(gd.rows, "own"), {colour: "soft", width: 1.4, dash: "6 3"}) + a.line(curve(gd.rows, "feature"), {colour: "soft", width: 1.4}) +
      a.line(curve(rows, "own"), {colour: "noise", width: 2.5, dash: "6 3"}) + a.line(curve(rows, "feature"), {colour: "signal", width: 3.5}),
      `At the end a hard sample has the margin ${short(last.feature)} from the feature and ${short(last.own)} from its noise.`);
  }

  function say(v, {memory, beta, p, rows, rest, gd, b, noise}) {
    const last = rows[rows.length - 1], part = x => `${Math.round(100 * shareOf(x))} %`, tau = needed({beta, p, noise, b});
    const far = plain(memory) ? `Gradient descent stops at a = ${short(last.a)}.`
      : rest === null ? `With the memory ${short(+memory.toPrecision(2))} the easy samples are not fitted yet.`
      : `When the easy samples are fitted, the ball would coast to a = ${short(rest)} (law for long memories: ${short(coast(memory, p))}).`;
    v.say(`${far} ${part(last)} of a hard sample’s margin is the feature’s at the end; under gradient descent ${part(gd.rows[gd.rows.length - 1])}. Memory needed, by the law: ${tau < ETA ? "none" : short(+tau.toPrecision(2))}.`);
  }

  const cell = ([lo, hi], i) => lo * (hi / lo) ** ((i + 0.5) / CELLS), X = m => LEFT + WIDE * Math.log(m / T[0]) / Math.log(T[1] / T[0]), Y = b => TOP + HIGH * (1 - Math.log(b / B[0]) / Math.log(B[1] / B[0]));
  function map(v, {memory, beta, p, b, noise}) {
    const canvas = v.panels[2], c = canvas.getContext("2d"), dx = WIDE / CELLS, dy = HIGH / CELLS;
    c.clearRect(0, 0, canvas.width, canvas.height);
    c.fillStyle = v.colour("edge"); c.fillRect(LEFT, TOP, WIDE, HIGH);
    for (const [key, part] of cells) {
      const [i, j] = key.split(",").map(Number);
      c.fillStyle = viridis(part); c.fillRect(LEFT + i * dx, TOP + HIGH - (j + 1) * dy, dx + 0.5, dy + 0.5);
    }
    const line = Array.from({length: 61}, (_, i) => B[0] * (B[1] / B[0]) ** (i / 60)).map(y => [Math.max(needed({beta: y, p, noise, b}), T[0] / 2), y]);
    const border = () => { c.beginPath(); for (const [x, y] of line) c.lineTo(X(x), Y(y)); c.stroke(); };
    c.save(); c.beginPath(); c.rect(LEFT, TOP, WIDE, HIGH); c.clip();
    c.setLineDash([]); c.strokeStyle = "#fff"; c.lineWidth = 6; border();
    c.setLineDash([14, 9]); c.strokeStyle = "#000"; c.lineWidth = 3; border(); c.setLineDash([]); c.restore();
    for (const [width, colour] of [[8, "#fff"], [3, "#000"]]) { c.lineWidth = width; c.strokeStyle = colour; c.beginPath(); c.arc(X(memory), Y(beta), 12, 0, 7); c.stroke(); }
    c.font = "27px system-ui"; c.fillStyle = v.colour("ink");
    const words = (align, list) => { c.textAlign = align; for (const [text, x, y] of list) c.fillText(text, x, y); };
    words("center", [["1", X(1), HIGH + TOP + 30], ["10", X(10), HIGH + TOP + 30], ["100", X(100), HIGH + TOP + 30], ["memory τ", LEFT + WIDE / 2, canvas.height - 8]]);
    words("right", [["0.3", LEFT - 8, Y(0.3) + 9], ["β", LEFT - 8, Y(0.18)], ["0.1", LEFT - 8, Y(0.1) + 9], ["0.05", LEFT - 8, Y(0.05) + 9]]);
    canvas.setAttribute("aria-label", `Map over memory, none to 1000, and margin of the hard samples, 0.04 to 0.4. ${cells.size} of ${CELLS ** 2} cells are trained. The present ball is at memory ${short(memory)}, margin ${short(beta)}.`);
  }

  function fill() { // a cell after the other, in slices that leave the page responsive
    const token = ++filling, of = drawn, slice = () => {
      if (token !== filling || !box.isConnected) return;
      const end = performance.now() + 20, now = setting(view.values());
      for (let k = 0; k < CELLS ** 2 && of === drawn; k++) {
        const i = k % CELLS, j = k / CELLS | 0, key = i + "," + j;
        if (!cells.has(key)) cells.set(key, shareOf(roll({...now, memory: cell(T, i), beta: cell(B, j)}, [LAST]).rows[0]));
        if (performance.now() > end) break;
      }
      map(view, now);
      if (cells.size < CELLS ** 2) setTimeout(slice, 0); else box.dataset.filled = cells.size;
    };
    if (cells.size < CELLS ** 2) { delete box.dataset.filled; setTimeout(slice, 0); }
  }

  const canvas = view.panels[2], go = (memory, beta) => {
    view.set("memory", Math.min(Math.max(memory, T[0]), T[1])); view.set("beta", Math.min(Math.max(beta, B[0]), B[1])); view.refresh();
  };
  canvas.onclick = e => {
    const q = canvas.getBoundingClientRect(), zoom = canvas.width / q.width;
    const x = ((e.clientX - q.left) * zoom - LEFT) / WIDE, y = 1 - ((e.clientY - q.top) * zoom - TOP) / HIGH;
    go(T[0] * (T[1] / T[0]) ** x, B[0] * (B[1] / B[0]) ** y);
  };
  canvas.onkeydown = e => {
    const move = {ArrowLeft: [0.8, 1], ArrowRight: [1.25, 1], ArrowUp: [1, 1.1], ArrowDown: [1, 1 / 1.1]}[e.key], s = view.values();
    if (move) { e.preventDefault(); go(s.memory * move[0], s.beta * move[1]); }
  };
  return view;
}

live.memory = {roll, coast, needed, shareOf, mount};
})(globalThis.flbookLive);
