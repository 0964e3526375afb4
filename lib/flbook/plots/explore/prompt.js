/* In-context regression: what a layer of linear attention makes of a prompt, and what others make of it.

   Every predictor answers <b, x> with weights b that it reads off the prompt's moments. Names and formulas are those of
   flbook/lectures/in_context_learning/shared/attention_risk.py and flbook/estimators/in_context.py. Inputs have two coordinates, uncorrelated ones of
   variances lam; one dimension is the case in which the second has variance 0. */
(live => {
"use strict";
const {random, short, axes} = live;

// ---- a prompt's moments, all that the predictors read
const INPUTS = {line: [1, 0], round: [1, 1], long: [1.8, 0.2]}; // variances of the coordinates
const sum = (list, f) => list.reduce((s, v, i) => s + f(v, i), 0), trace = lam => lam[0] + lam[1], dimension = lam => lam[1] ? 2 : 1;
const dot = (a, b) => a[0] * b[0] + a[1] * b[1];

function momentsOf(x, y) { // s: the entries of S = mean of x x^T; m: mean of y x; power: mean of y^2
  const mean = f => sum(x, f) / x.length;
  return {n: x.length, s: [mean(v => v[0] * v[0]), mean(v => v[0] * v[1]), mean(v => v[1] * v[1])], m: [0, 1].map(j => mean((v, i) => y[i] * v[j])), power: mean((_, i) => y[i] ** 2)};
}
function eigen([a, b, c]) { // of a symmetric matrix without negative eigenvalues; the larger one first
  const big = (a + c) / 2 + Math.hypot((a - c) / 2, b), angle = Math.atan2(2 * b, a - c) / 2, p = Math.cos(angle), q = Math.sin(angle);
  return [{value: big, v: [p, q]}, {value: big > 0 ? Math.max((a * c - b * b) / big, 0) : 0, v: [-q, p]}];
}
const empirical = ({s, m, power}, b) => (s[0] * b[0] ** 2 + 2 * s[1] * b[0] * b[1] + s[2] * b[1] ** 2) / 2 - dot(m, b) + power / 2; // the prompt's own loss at b

// ---- predictors: the weights b of each
function ridge({n, s: [a, b, c], m}, penalty = 0) { // without a penalty the shortest least-squares solution
  const p = a + penalty / n, q = c + penalty / n, det = p * q - b * b;
  if (det > 1e-12 * (p + q) ** 2) return [(q * m[0] - b * m[1]) / det, (p * m[1] - b * m[0]) / det];
  const {value, v} = eigen([p, b, q])[0], along = value ? dot(v, m) / value : 0; // singular up to rounding
  return [along * v[0], along * v[1]];
}
const attention = ({m}, gamma) => [gamma[0] * m[0], gamma[1] * m[1]]; // one layer; of Gamma the diagonal
const attentionOptimum = (n, lam, noise) => lam.map(l => 1 / ((n + 1) / n * l + (trace(lam) + noise ** 2) / n));
function bestStep(n, lam, noise) { // of all Gamma = eta I
  const power = k => lam[0] ** k + lam[1] ** k;
  return power(2) / ((n + 1) / n * power(3) + (trace(lam) + noise ** 2) / n * power(2));
}
const matrices = (n, trained, lam, noise) => ({layer: attentionOptimum(trained, lam, noise), step: [0, 0].fill(bestStep(n, lam, noise)), average: [1, 1]});
function weights(moments, trained, lam, noise) {
  const all = {squares: ridge(moments), bayes: ridge(moments, noise ** 2)}, gammas = matrices(moments.n, trained, lam, noise);
  for (const name in gammas) all[name] = attention(moments, gammas[name]);
  return all;
}
function gains({s: [a, b, c]}, gamma) { // eigenvalues of Gamma S: how much of the way to least squares a step goes
  const half = (gamma[0] * a + gamma[1] * c) / 2, root = Math.sqrt(Math.max(half * half - gamma[0] * gamma[1] * (a * c - b * b), 0));
  return [half + root, Math.max(half - root, 0)];
}

// ---- squared errors, averaged over the query
const errorAt = (b, task, lam) => sum(lam, (l, j) => l * (b[j] - task[j]) ** 2);
function attentionRisk(gamma, n, lam, noise) { // mean over prompts
  return sum(lam, (l, j) => l * (1 - l * gamma[j]) ** 2 + (l * l * gamma[j] ** 2) * (l + trace(lam) + noise ** 2) / n);
}
function leastSquaresRisk(n, lam, noise) { // infinite where S may be nearly singular
  const d = dimension(lam);
  if (noise) return n > d + 1 ? noise ** 2 * d / (n - d - 1) : Infinity;
  return n >= d ? 0 : Math.sqrt(lam[0] * lam[1]); // of two directions one is seen
}
function ridgeRisk(n, lam, noise) { // trace of Lambda (n S / noise^2 + I)^-1, mean over prompts
  /* An entry on the diagonal is 1 / (1 + |part of its column that the other one cannot predict|^2 / noise^2). Given w, the squared length
     of the other column, that is a sum of n squares, one of them shrunk by s, and 1/q is the integral of exp(-q t) over t. */
  if (!noise) return leastSquaresRisk(n, lam, 0);
  const entry = (own, other) => {
    const f = 2 * own / noise ** 2, lengths = other ? chiSquare(n) : [[0, 1]], h = 0.4;
    let total = 0;
    for (let u = -30; u < 4; u += h) {
      const t = Math.exp(u);
      let mean = 0;
      for (const [w, mass] of lengths) mean += mass / Math.sqrt(1 + f * t / (1 + other * w / noise ** 2));
      total += h * t * Math.exp(-t) * (1 + f * t) ** ((1 - n) / 2) * mean;
    }
    return total;
  };
  return sum(lam, (l, j) => l && l * entry(l, lam[1 - j]));
}
function chiSquare(n) { // nodes and masses: the trapezoidal rule in the logarithm
  const h = Math.min(0.4, 1 / Math.sqrt(n)), nodes = [], middle = Math.log(n), density = u => Math.exp(n / 2 * (u - middle) - (Math.exp(u) - n) / 2);
  for (let u = middle - 42 / n - 10 / Math.sqrt(n); u < Math.log(n + 12 * Math.sqrt(n) + 40); u += h) nodes.push([Math.exp(u), density(u)]);
  const mass = sum(nodes, ([, p]) => p);
  return nodes.map(([w, p]) => [w, p / mass]);
}

// ---- prompts drawn at random: standard normal, so that covariance and noise can change without a new draw
function drawPrompt(n, seed) {
  const {normal} = random(seed, "prompt"), task = [normal(), normal()];
  return {task, rows: Array.from({length: n}, () => ({z: [normal(), normal()], e: normal()}))};
}
function drawSums(count, at, seed, role) { // for each length in `at`: S of z and the mean of e z; a longer prompt continues the shorter
  const {normal} = random(seed, role), last = Math.max(...at), sums = at.map(() => ({s: new Float64Array(3 * count), ez: new Float64Array(2 * count)})), task = new Float64Array(2 * count);
  for (let k = 0; k < count; k++) {
    let a = 0, b = 0, c = 0, p = 0, q = 0;
    task[2 * k] = normal(); task[2 * k + 1] = normal();
    for (let n = 1, j = 0; n <= last; n++) {
      const u = normal(), v = normal(), e = normal();
      a += u * u; b += u * v; c += v * v; p += e * u; q += e * v;
      if (n === at[j]) { sums[j].s.set([a / n, b / n, c / n], 3 * k); sums[j].ez.set([p / n, q / n], 2 * k); j++; }
    }
  }
  return {count, at, task, sums};
}
function simulate({count, at, task, sums}, trained, lam, noise) { // mean error of each predictor at each length
  const r = lam.map(Math.sqrt), d = dimension(lam);
  return at.map((n, j) => {
    const {s, ez} = sums[j], total = {squares: 0, bayes: 0, layer: 0, step: 0, average: 0};
    for (let k = 0; k < count; k++) {
      const own = [task[2 * k], d > 1 ? task[2 * k + 1] : 0], S = [lam[0] * s[3 * k], r[0] * r[1] * s[3 * k + 1], lam[1] * s[3 * k + 2]];
      const m = [S[0] * own[0] + S[1] * own[1] + noise * r[0] * ez[2 * k], S[1] * own[0] + S[2] * own[1] + noise * r[1] * ez[2 * k + 1]];
      const found = weights({n, s: S, m}, trained, lam, noise);
      for (const name in total) total[name] += errorAt(found[name], own, lam) / count;
    }
    return {n, ...total};
  });
}

// ---- the figure
const MOST = 30, PROMPTS = 500, CURVE = [...Array.from({length: MOST}, (_, i) => i + 1), 36, 45, 55, 70, 85, 100], DOTS = [1, 2, 4, 8, 16, 32, 64];
const {W, H, LEFT, TOP, WIDE, HIGH} = live.field, ASPECT = WIDE / HIGH;
const LOOKS = { // in the order in which they are drawn, so that what often coincides lies inside of what is larger
  squares: {words: "least squares", glyph: "□", colour: "soft", shape: "M-6-6H6V6H-6Z", hollow: true, line: {width: 2, dash: "9 3"}},
  step: {words: "best gradient step", glyph: "△", colour: "noise", shape: "M0-10L9 5.5H-9Z", hollow: true, line: {width: 7}, pale: true},
  average: {words: "average", glyph: "✕", colour: "noise", shape: "M-5-5L5 5M-5 5L5-5", hollow: true, line: {width: 2, dash: "3 4"}},
  bayes: {words: "Bayes", glyph: "◆", colour: "test", shape: "M0-5.5L5.5 0L0 5.5L-5.5 0Z", line: {width: 2}},
  layer: {words: "trained layer", glyph: "●", colour: "signal", shape: "M-4.8 0a4.8 4.8 0 1 0 9.6 0a4.8 4.8 0 1 0-9.6 0Z", line: {width: 2.6}},
};
const STAR = "M" + Array.from({length: 10}, (_, i) => [i % 2 ? 3.4 : 8, i * Math.PI / 5]).map(([r, t]) => (r * Math.sin(t)).toFixed(1) + " " + (-r * Math.cos(t)).toFixed(1)).join("L") + "Z";
const spoken = value => ["layer", "step", "average", "squares", "bayes"].map(name => `${LOOKS[name].words} ${value(name)}`).join(", ");
const pick = (v, steps) => steps.find(s => s >= v) || steps[steps.length - 1], clamp = (v, lo, hi) => Math.min(Math.max(v, lo), hi), two = v => v < 1e-12 ? "0" : short(+v.toPrecision(2)).replace(Infinity, "∞");

function mount(box, given = {}) {
  const start = {n: 10, trained: 10, noise: 0.5, inputs: "line", seed: 0, ...given};
  let seed = start.seed, known = {}, drawn, many, moved = new Map(), task = null, kept = "", holding = null, last = [], quiet = 0;
  const draw = () => { drawn = drawPrompt(MOST, seed); many = drawSums(PROMPTS, DOTS, seed, "prompts"); moved.clear(); task = null; };
  draw();
  const caption = i => box.querySelectorAll("figcaption")[i], key = name => `<b style="color:var(--${LOOKS[name].colour})">${LOOKS[name].glyph} ${LOOKS[name].words}</b>`;

  const view = live.figure(box, {
    label: "Live figure: what linear attention and other predictors make of a prompt of examples",
    controls: [
      {name: "n", kind: "range", label: "examples n", min: 1, max: MOST, step: 1, value: start.n},
      {name: "trained", kind: "range", label: "trained at N", min: 1, max: 100, step: 0.02, log: true, value: start.trained, show: v => String(Math.round(v))},
      {name: "noise", kind: "range", label: "label noise σ", min: 0, max: 2, step: 0.1, value: start.noise},
      {name: "inputs", kind: "choice", label: "inputs", value: start.inputs, choices: {line: "d = 1", round: "d = 2, equal variances", long: "d = 2, variances 9 : 1"}},
      {name: "again", rest: true, kind: "button", label: "New prompt", act: v => { seed++; draw(); v.refresh(); }},
    ],
    panels: [
      {caption: ""},
      {caption: ""},
      {caption: `Mean squared error at a fresh query. Dashed: exact. Marks: ${PROMPTS} live prompts. Upright: the present n and, dotted, the N that the layer was trained at.`},
    ],
    compute: s => {
      if (kept && kept !== s.inputs) { moved.clear(); task = null; } // what was moved lies in another space
      kept = s.inputs;
      const q = {...s, trained: Math.round(s.trained), lam: INPUTS[s.inputs], d: dimension(INPUTS[s.inputs])}, p = prompt(q), risks = risksOf(q);
      const moments = momentsOf(p.x, p.y), found = weights(moments, q.trained, q.lam, q.noise), errors = {};
      for (const name in LOOKS) errors[name] = errorAt(found[name], p.task, q.lam);
      return {...q, ...p, moments, found, errors, risks, now: risks[q.n - 1], dots: simulate(many, q.trained, q.lam, q.noise)};
    },
    draw: (v, r) => { examples(r); loss(r); curves(v, r); say(r); },
  });

  function prompt({n, noise, lam, d}) {
    const own = task || (d > 1 ? drawn.task : [drawn.task[0], 0]), rows = drawn.rows.slice(0, n);
    const x = rows.map(({z}, i) => moved.get(i)?.x || z.map((v, j) => v * Math.sqrt(lam[j]))), e = rows.map((row, i) => moved.get(i)?.e ?? noise * row.e);
    return {task: own, x, e, y: x.map((v, i) => dot(v, own) + e[i])};
  }
  function risksOf({inputs, trained, lam, noise}) { // exact; those of Bayes take the longest and do not depend on N
    if (known.of !== inputs + noise) known = {of: inputs + noise, bayes: CURVE.map(n => ridgeRisk(n, lam, noise))};
    return CURVE.map((n, i) => {
      const gammas = matrices(n, trained, lam, noise), out = {n, squares: leastSquaresRisk(n, lam, noise), bayes: known.bayes[i]};
      for (const name in gammas) out[name] = attentionRisk(gammas[name], n, lam, noise);
      return out;
    });
  }

  // ---- panels with things to move: what is drawn anew lies in one group, what keeps the focus in another
  const panels = view.panels.slice(0, 2), clip = `${box.id || "live"}-field`;
  for (const panel of panels) {
    panel.setAttribute("role", "group");
    panel.innerHTML = `<style>.fll .move{outline:0!important}.fll .move circle{cursor:grab}.fll .move:focus-visible circle{stroke:var(--signal);stroke-width:2.5}</style>
<clipPath id="${clip}"><rect x="${LEFT}" y="${TOP}" width="${WIDE}" height="${HIGH}"/></clipPath><g aria-hidden="true"></g><g></g>`;
  }
  const shape = (path, x, y, {colour = "ink", hollow = false, scale = 1} = {}) => `<path d="${path}" transform="translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale})" ` +
    (hollow ? `fill="none" stroke="var(--${colour})" stroke-width="2.2"/>` : `fill="var(--${colour})" stroke="var(--ground)" stroke-width="1"/>`);
  const mark = (name, x, y, scale) => shape(LOOKS[name].shape, x, y, {...LOOKS[name], scale});
  const paint = (i, body, words) => { panels[i].children[2].innerHTML = body; panels[i].setAttribute("aria-label", words); };
  const hold = (i, fresh) => last[i] = holding?.panel === i && last[i] || fresh; // the axes of a panel stay while something in it is pulled
  const toValue = (i, e) => { // of a pointer, in the units of the panel's axes
    const q = panels[i].getBoundingClientRect(), [x0, x1] = last[i].x, [y0, y1] = last[i].y;
    const u = ((e.clientX - q.left) / q.width * W - LEFT) / WIDE, v = 1 - ((e.clientY - q.top) / q.height * H - TOP) / HIGH;
    return [x0 + clamp(u, 0, 1) * (x1 - x0), y0 + clamp(v, 0, 1) * (y1 - y0)];
  };
  const named = (node, list) => { for (const name in list) node.setAttribute(name, list[name]); };
  function movable(i, k, {x, y, words, values, look, to}) { // the k-th of panel i, at (x, y) of the picture
    const group = panels[i].children[3];
    if (!group.children[k]) {
      const node = document.createElementNS("http:" + "//www.w3.org/2000/svg", "g");
      node.innerHTML = '<circle r="12" fill="transparent"/><g pointer-events="none"></g>'; // the circle stays while a finger is on it
      named(node, {class: "move", tabindex: 0, role: "slider", "aria-valuemin": -6, "aria-valuemax": 6});
      node.onpointerdown = e => { // of several under the pointer, the nearest
        const nearest = [...group.children].sort((a, b) => a.away(e) - b.away(e))[0];
        e.preventDefault(); nearest.focus({preventScroll: true}); nearest.setPointerCapture(e.pointerId); holding = {panel: i, node: nearest};
      };
      node.ontouchstart = e => e.preventDefault(); // or a finger would scroll the page; inside an SVG touch-action is not enough
      node.onpointermove = e => { if (holding?.node === node) { node.to(...toValue(i, e)); view.refresh(); } };
      node.onpointerup = node.onpointercancel = () => { holding = null; view.refresh(false); };
      node.onkeydown = e => {
        const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[e.key], size = e.shiftKey ? 0.5 : 0.1;
        if (by) { e.preventDefault(); node.to(...node.values.map((v, j) => clamp(v + size * by[j], ...[-1, 1].map(s => s * Math.max(6, Math.abs(v)))))); view.refresh(); }
      };
      group.append(node);
    }
    const node = group.children[k];
    Object.assign(node, {values, to, away: e => { const q = node.getBoundingClientRect(); return Math.hypot(e.clientX - q.left - q.width / 2, e.clientY - q.top - q.height / 2); }});
    node.lastChild.innerHTML = look;
    named(node, {transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, "aria-label": words[0], "aria-valuetext": words[1], "aria-valuenow": values[0].toFixed(2)});
  }
  const square = R => { // a plane: the same unit on both axes
    const gap = R > 3 ? 2 : R > 1 ? 1 : 0.5, ticks = most => [-3, -2, -1, 0, 1, 2, 3].map(k => k * gap).filter(v => Math.abs(v) <= most).map(v => [v, short(v)]);
    return {x: [-R * ASPECT, R * ASPECT], y: [-R, R], xticks: ticks(R * ASPECT), yticks: ticks(R)};
  };
  const ellipse = ([cx, cy], [rx, ry], angle, more) => `<ellipse rx="${clamp(rx, 0.2, 1e4).toFixed(1)}" ry="${clamp(ry, 0.2, 1e4).toFixed(1)}" transform="translate(${cx.toFixed(1)} ${cy.toFixed(1)}) rotate(${(-angle).toFixed(2)})" fill="none" ${more}/>`;
  const angleOf = v => Math.atan2(v[1], v[0]) * 180 / Math.PI;

  function examples(r) {
    const {d, x, y, e, task: own, found, moments, n} = r, big = list => Math.max(...list.map(Math.abs)), at = (b, v) => [v, b[0] * v];
    const field = hold(0, d > 1 ? square(pick(1.06 * Math.max(big(x.map(v => v[1])), big(x.map(v => v[0])) / ASPECT), [2, 3, 4, 6]))
      : {x: [-1, 1].map(s => s * pick(1.06 * big(x.map(v => v[0])), [3, 4, 6])), y: [-1, 1].map(s => s * pick(1.06 * big(y), [2, 3, 4, 6, 8, 12, 18, 40]))});
    const a = axes({...field, xlabel: d > 1 ? "input x₁" : "input x", ylabel: d > 1 ? "x₂" : "label y"}), [, X] = field.x, [, Y] = field.y;
    let body = a.frame();
    if (d > 1) {
      const unit = WIDE / (2 * X), pairs = eigen(moments.s), radii = list => list.map(l => 2 * unit * Math.sqrt(l)), middle = [a.px(0), a.py(0)];
      body += `<g clip-path="url(#${clip})">` + ellipse(middle, radii(pairs.map(p => p.value)), angleOf(pairs[0].v), 'stroke="var(--soft)" stroke-width="2"') +
        ellipse(middle, radii(r.lam), 0, 'stroke="var(--ink)" stroke-width="1.8" stroke-dasharray="6 4"') + "</g>";
    } else {
      const reach = b => Math.min(X, Y / Math.max(Math.abs(b[0]), 1e-9)), across = b => [at(b, -reach(b)), at(b, reach(b))];
      for (const [name, {line, colour, pale}] of Object.entries(LOOKS)) body += `<g${pale ? ' opacity=".4"' : ""}>${a.line(across(found[name]), {colour, ...line})}</g>`;
      body += a.line(across(own), {width: 2, dash: "5 5"}) + Object.keys(LOOKS).map((name, k) => { // not all at the same x, or they would cover each other
        const v = reach(found[name]) * [0.8, 0.95, 0.95, 0.88, 0.95][k];
        return mark(name, a.px(v), a.py(found[name][0] * v));
      }).join("");
    }
    paint(0, body, d > 1 ? `${n} examples in the plane of inputs; filled marks have positive labels.` : `${n} examples and the lines of the predictors. Slopes: task ${short(own[0])}, ` +
      spoken(name => short(found[name][0])) + ".");
    for (const group = panels[0].children[3]; group.children.length > n;) group.lastChild.remove();
    x.forEach((v, i) => {
      const words = [`example ${i + 1}`, `x = ${said(v, d)}, y = ${short(y[i])}`], size = d > 1 ? 2.5 + 2 * Math.sqrt(Math.min(Math.abs(y[i]), 9)) : 4.3;
      const look = `<circle r="${size.toFixed(1)}" ` + (d > 1 && y[i] < 0 ? 'fill="var(--ground)" stroke="var(--ink)" stroke-width="1.8"/>' : 'fill="var(--ink)" stroke="var(--ground)" stroke-width="1"/>');
      const to = d > 1 ? (p, q) => moved.set(i, {x: [p, q], e: e[i]}) : (p, q) => moved.set(i, {x: [p, 0], e: q - own[0] * p});
      movable(0, i, {x: a.px(clamp(v[0], -X, X)), y: a.py(d > 1 ? v[1] : y[i]), words, values: d > 1 ? v : [v[0], y[i]], look, to});
    });
    caption(0).innerHTML = d > 1 ? "Examples: filled if y > 0, open if y < 0, larger for larger |y|. Drag them, or Tab and arrow keys. Ellipses of two standard deviations: this prompt (S, solid) and training (Λ, dashed)."
      : "Examples: drag them, or Tab and arrow keys. Dashed: the task. The lines are the predictors, with the marks of the next panel.";
  }

  function loss(r) {
    const {d, task: own, found, moments} = r, all = [own, ...Object.values(found)], coordinates = j => [0, ...all.map(b => b[j])];
    let a, body, put;
    if (d > 1) {
      const field = hold(1, square(pick(1.15 * Math.max(...coordinates(1).map(Math.abs), ...coordinates(0).map(v => Math.abs(v) / ASPECT)), [1, 1.5, 2, 3, 4, 6]))), [, R] = field.y;
      a = axes({...field, xlabel: "weight b₁", ylabel: "b₂"});
      put = b => [a.px(clamp(b[0], -R * ASPECT, R * ASPECT)), a.py(clamp(b[1], -R, R))];
      const least = found.squares, depth = Math.max(dot(moments.m, least), 0), unit = HIGH / (2 * R), pairs = eigen(moments.s), [m0, m1] = moments.m, far = 20 / Math.hypot(m0, m1);
      const centre = [a.px(0) + unit * least[0], a.py(0) - unit * least[1]];
      body = a.frame() + `<g clip-path="url(#${clip})">` + [0.25, 0.5, 0.75, 1, 1.5, 2].map(f => ellipse(centre, pairs.map(p => f * unit * Math.sqrt(depth / (p.value || 1e-9))), angleOf(pairs[0].v), 'stroke="var(--soft)" stroke-width=".8"')).join("") +
        (Number.isFinite(far) ? `<path d="M${a.px(0)} ${a.py(0)}l${(unit * far * m0).toFixed(1)} ${(-unit * far * m1).toFixed(1)}" stroke="var(--noise)" stroke-width="1.2" stroke-dasharray="2 3"/>` : "") + "</g>";
    } else {
      const [lo, hi] = [Math.min(...coordinates(0)), Math.max(...coordinates(0))].map((v, k) => clamp(Math.round((v + (k ? 0.35 : -0.35)) * 2) / 2, -6, 6)), at = b => empirical(moments, [b, 0]);
      const most = Math.max(...[0, ...all.map(b => clamp(b[0], lo, hi))].map(at)), field = hold(1, {x: [lo, hi], y: [0, 1.35 * most || 1]}), [x0, x1] = field.x;
      a = axes({...field, xlabel: "weight b", ylabel: "loss of this prompt"});
      put = b => [a.px(clamp(b[0], x0, x1)), a.py(at(clamp(b[0], x0, x1)))];
      const points = Array.from({length: 81}, (_, i) => x0 + (x1 - x0) * i / 80).map(b => [b, at(b)]);
      body = a.frame() + a.line(points.filter(([, l]) => l <= 0.87 * field.y[1]), {colour: "soft", width: 1.5}); // the label stands above
    }
    const [zx, zy] = put([0, 0]);
    body += `<circle cx="${zx.toFixed(1)}" cy="${zy.toFixed(1)}" r="4" fill="var(--ground)" stroke="var(--ink)" stroke-width="1.6"/>`;
    for (const name in LOOKS) body += mark(name, ...put(found[name]));
    paint(1, body, `Weights over the prompt's own loss, from the start at 0. Task ${said(own, d)}, ` + spoken(name => said(found[name], d)) + ".");
    const [x, y] = put(own), to = (p, q) => { task = d > 1 ? [p, q] : [p, 0]; };
    movable(1, 0, {x, y, words: ["task β", said(own, d)], values: own, look: shape(STAR, 0, 0, {hollow: true}), to});
    caption(1).innerHTML = `The prompt's own loss over the weights b: ○ start, ☆ task (drag it), ${key("layer")}, ${key("step")} (on average over prompts of n), ${key("average")} of y x, a step of size 1, ${key("squares")}, ${key("bayes")} (ridge).` +
      (d > 1 ? " Thin: equal loss; dotted: along the gradient." : "");
  }
  const said = (b, d) => d > 1 ? `(${short(b[0])}, ${short(b[1])})` : short(b[0]);

  function curves(v, r) {
    const {risks, dots, noise, d, n, trained, now} = r, shown = risks.flatMap(q => [q.layer, q.step, q.average]);
    const bottom = noise ? 10 ** Math.max(Math.floor(Math.log10(0.999 * noise ** 2 * d / 100)), -4) : 1e-3, top = 10 ** Math.ceil(Math.log10(1.2 * Math.max(...shown)));
    const a = axes({x: [0.8, 115], y: [bottom, top], logx: true, logy: true, xlabel: "examples n", xticks: [[1, "1"], [10, "10"], [100, "100"]]});
    const inside = list => list.filter(([, e]) => e >= bottom && e <= top), points = (list, name) => inside(list.map(q => [q.n, q[name]]));
    const lines = Object.keys(LOOKS).map(name => a.line(points(risks, name), {width: 1.5, dash: "5 3"})).join("");
    const marks = Object.keys(LOOKS).map(name => points(dots.filter(q => Number.isFinite(leastSquaresRisk(q.n, r.lam, noise)) || name !== "squares"), name)
      .map(([m, e]) => mark(name, a.px(m), a.py(e), 0.7)).join("")).join("");
    v.svg(2, a.frame() + a.upright(trained, {colour: "signal", dash: "2 3"}) + a.upright(n) + lines + marks, `Mean squared error over the number of examples, 1 to 100, logarithmic. At ${n}: ` +
      spoken(name => two(now[name])) + ".");
  }

  function say(r) {
    const {errors, now, moments, lam, trained, n, d, noise} = r, gammas = matrices(n, trained, lam, noise), way = name => gains(moments, gammas[name]).slice(0, d).map(two).join(" and ");
    const why = d > 1 ? `One layer is one gradient step from 0 with the matrix learned at N = ${trained}, Γ = diag(${gammas.layer.map(two).join(", ")}): along two directions it goes ${way("layer")} of the way to least squares, the plain step ${way("step")} (1 would reach it).`
      : `One layer is one gradient step from 0 of the size learned at N = ${trained}, Γ = ${two(gammas.layer[0])}: with S = ${two(moments.s[0])} here it goes ΓS = ${two(gammas.layer[0] * moments.s[0])} of the way to least squares (1 would reach it).`;
    const words = `Mean squared error on this prompt: ${spoken(name => two(errors[name]))}. ${why} Over all prompts: layer ${two(now.layer)}, Bayes ${two(now.bayes)}.` + (task || [...moved.keys()].some(i => i < n) ? " (This prompt was moved by hand.)" : "");
    const line = box.querySelector(".fll-say"); // everybody sees it at once; it is read out when the change has ended
    line.setAttribute("aria-live", "off");
    line.textContent = words;
    clearTimeout(quiet);
    quiet = setTimeout(() => { line.setAttribute("aria-live", "polite"); line.textContent = ""; line.textContent = words; }, 700);
  }
  return view;
}

live.prompt = {momentsOf, eigen, empirical, ridge, attention, attentionOptimum, bestStep, weights, gains, errorAt, attentionRisk, leastSquaresRisk, ridgeRisk, drawPrompt, drawSums, simulate, INPUTS, mount};
})(globalThis.flbookLive);
