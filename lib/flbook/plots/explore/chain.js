/* The first gradient of one node of a parity's chain, token by token, as samples are added.

   Formulas: flbook/lectures/in_context_learning/chain_of_thought/parity_trees.py (tokens, activation, first_gradient). */
(live => {
"use strict";
const {random, short, axes} = live;
const K = 8, MOST = 8192;

function shuffled(d, uniform) { // places of the hidden bits
  const places = [...Array(d).keys()];
  for (let i = 0; i < K; i++) { const j = i + Math.floor(uniform() * (d - i)); [places[i], places[j]] = [places[j], places[i]]; }
  return places.slice(0, K);
}
function tree(hidden, d) { // parents of the nodes, level by level
  const parents = [];
  for (let below = hidden, first = d; below.length > 1;) {
    const next = [];
    for (let i = 0; i < below.length; i += 2) { parents.push([below[i], below[i + 1]]); next.push(first++); }
    below = next;
  }
  return parents;
}
function chains(d, parents, n, flip, {uniform}) { // tokens by rows; a flipped node is seen so by those above it as well, as a token
  const T = d + parents.length, x = new Int8Array(n * T), right = new Int8Array(T);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < d; j++) x[i * T + j] = right[j] = uniform() < 0.5 ? -1 : 1;
    parents.forEach(([a, b], m) => { right[d + m] = right[a] * right[b]; x[i * T + d + m] = uniform() < flip ? -right[d + m] : right[d + m]; });
  }
  return x;
}
function gradient(x, T, n, m) { // minus the gradient of node m (counted from 0 among all tokens) at zero scores, over the m tokens before it
  const G = new Float64Array(m);
  let own = 0;
  for (let i = 0; i < n; i++) {
    const row = x.subarray(i * T, i * T + T);
    let z = 0;
    for (let j = 0; j < m; j++) z += row[j];
    z /= m;
    const pulled = (1 + row[m] - 2 * z * z) * z / n;
    own += pulled * z;
    for (let j = 0; j < m; j++) G[j] += pulled * row[j];
  }
  return G.map(g => 4 / m * (g - own));
}

function mount(box, given = {}) {
  const first = {n: 1000, d: 32, flip: 0, node: "last", seed: 0, ...given};
  let kept = {};
  function compute(v) {
    const n = Math.round(v.n), flip = v.flip / 100, key = [v.d, flip, v.seed].join();
    if (kept.key !== key) {
      const stream = random(v.seed, "chains"), parents = tree(shuffled(v.d, stream.uniform), v.d);
      kept = {key, parents, x: chains(v.d, parents, MOST, flip, stream)};
    }
    const T = v.d + K - 1, m = v.node === "last" ? T - 1 : v.d, both = kept.parents[m - v.d];
    const G = gradient(kept.x, T, n, m), least = Math.min(G[both[0]], G[both[1]]);
    const ahead = [...G].filter((g, j) => !both.includes(j) && g >= least).length;
    return {n, m, both, G: G.map(g => g * m * m / 4), ahead, correct: (1 - 2 * flip) ** (v.node === "last" ? 3 : 1)};
  }
  live.figure(box, {
    label: "Live figure: the gradient of one node of the chain",
    controls: [
      {name: "n", kind: "range", label: "samples n", min: 32, max: MOST, step: 0.05, value: first.n, log: true, show: v => short(Math.round(v))},
      {name: "d", kind: "range", label: "bits d", min: 16, max: 64, step: 8, value: first.d},
      {name: "flip", kind: "range", label: "wrong steps, %", min: 0, max: 20, step: 1, value: first.flip},
      {name: "node", rest: true, kind: "choice", label: "node", value: first.node, choices: {last: "the last", first: "a product of two bits"}},
      {name: "seed", rest: true, kind: "range", label: "draw", min: 0, max: 20, step: 1, value: first.seed},
    ],
    panels: [
      {caption: 'The gradient of every earlier token, in units of 4/M²: <b style="color:var(--signal)">parents</b> and <b style="color:var(--soft)">others</b>. Dashed: their means in theory.'},
    ],
    compute,
    draw: (view, now) => { bars(view, now); say(view, now); },
  });
  function bars(view, {m, both, G, correct}) {
    const top = Math.max(1.6, ...G) * 1.05, low = Math.min(-1, ...G) * 1.05, a = axes({x: [0, m + 1], y: [low, top], xlabel: "token", ylabel: "gradient"});
    const bar = (g, j) => a.line([[j + 1, 0], [j + 1, g]], {colour: both.includes(j) ? "signal" : "soft", width: both.includes(j) ? 6 : Math.max(2, 150 / m)});
    const level = y => a.line([[0, y], [m + 1, y]], {colour: "ink", width: 1.5, dash: "6 3"});
    view.svg(0, a.frame() + [...G].map(bar).join("") + level(correct - 2 / m) + level(-2 / m),
      `Gradients of ${m} tokens; the two parents have ${short(G[both[0]])} and ${short(G[both[1]])}.`);
  }
  function say(view, {n, m, ahead, correct}) {
    const s = correct * Math.sqrt(n / (2 * m));
    view.say(`Signal over noise ${s.toFixed(1)}. ` + (ahead === 0 ? "Both parents are ahead of all other tokens: one step finds them." :
      `${ahead} of ${m - 2} other tokens ${ahead === 1 ? "is" : "are"} ahead of a parent: the step looks at the wrong places.`));
  }
}

live.chain = {tree, chains, gradient, mount};
})(globalThis.flbookLive);
