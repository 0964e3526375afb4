/* When a denoiser on fixed tanh features learns and when it memorises: losses of infinitely many features in closed form.

   Formulas: flbook/lectures/foundation_models/two_clocks/clocks.py. */
(live => {
"use strict";
const {short, axes} = live;

const nodes = Array.from({length: 4001}, (_, k) => -10 + k / 200), density = nodes.map(z => Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI) / 200);
const squares = (() => { // of tanh's normalised Hermite coefficients
  const sums = new Float64Array(40);
  nodes.forEach((z, i) => {
    let below = 0, here = 1;
    const weight = density[i] * Math.tanh(z);
    for (let k = 0; k < 40; k++) { sums[k] += weight * here; [below, here] = [here, (z * here - Math.sqrt(k) * below) / Math.sqrt(k + 1)]; }
  });
  return Array.from(sums, c => c * c);
})();
const a2 = squares[1];
const own = kept => squares.reduce((sum, c, k) => k < 2 ? sum : sum + c * kept ** k, 0); // v^2
const learning = d => Math.LN2 / 2 * d / a2;
const rate = (n, kept) => own(kept) * (1 - kept) / n;
function halfGap(kept) { // in units of one over the rate, many samples a dimension
  const q = kept / (1 - kept), h = Math.abs(q - 1) < 1e-9 ? 0.5 : (Math.sqrt(1 + (q - 1) * (1 + q) / 2) - 1) / (q - 1);
  return -Math.log1p(-h);
}
function marchenkoPastur(ratio, count = 60) {
  const theta = Array.from({length: count}, (_, k) => (k + 0.5) * Math.PI / count);
  const places = theta.map(x => 1 + ratio + 2 * Math.sqrt(ratio) * Math.cos(x)), raw = theta.map((x, k) => Math.sin(x) ** 2 / places[k]);
  const total = raw.reduce((sum, x) => sum + x, 0);
  return {places, weights: raw.map(x => x / total)};
}

/* Training and test loss at times s: a problem of two numbers in each direction, here with its eigenvalues written out. */
function losses(s, n, d, kept, {places, weights}) {
  const v2 = own(kept), noise = 1 - kept, train = s.map(() => 0), test = s.map(() => 0);
  places.forEach((share, j) => {
    const A = a2 * (kept * share + noise) / d, C = v2 / n, determinant = a2 * v2 * noise / (d * n);
    const fast = (A + C) / 2 + Math.hypot((A - C) / 2, Math.sqrt(Math.max(A * C - determinant, 0))), slow = determinant / fast;
    const part = fast - slow > 1e-14 * fast ? (A - slow) / (fast - slow) : 1, V2 = a2 * noise / d; // of V in the fast mode
    s.forEach((time, k) => {
      const gone = l => -Math.expm1(-l * time) / l, both = l => -Math.expm1(-2 * l * time) / l;
      const answer = -Math.sqrt(noise) * a2 / d * (part * gone(fast) + (1 - part) * gone(slow));
      train[k] += weights[j] * (1 - V2 * (part * both(fast) + (1 - part) * both(slow)));
      test[k] += weights[j] * (1 + 2 * answer * Math.sqrt(noise) + answer * answer);
    });
  });
  return {train, test};
}

// ---- the figure
function mount(box, given = {}) {
  const first = {n: 64, d: 8, kept: 0.8, ...given};
  const s = Array.from({length: 161}, (_, k) => 10 ** (k / 20));

  function compute({n, d, kept}) {
    const samples = Math.max(Math.round(n), 2 * d), found = losses(s, samples, d, kept, marchenkoPastur(d / samples));
    const gap = found.test.map((x, k) => x - found.train[k]), end = 1 + 2 * (kept / (1 - kept) - 1) / 2;
    const best = Math.min(...found.test), at = s[found.test.indexOf(best)], k = gap.findIndex(x => x > end / 2);
    return {...found, samples, d, kept, best, at, half: k < 0 ? NaN : s[k], learned: learning(d), memory: halfGap(kept) / rate(samples, kept)};
  }

  live.figure(box, {
    label: "Live figure: when a denoiser learns and when it memorises",
    controls: [
      {name: "n", kind: "range", label: "samples n", min: 16, max: 10000, step: 0.05, log: true, value: first.n, show: v => String(Math.round(v))},
      {name: "d", rest: true, kind: "range", label: "dimension d", min: 4, max: 64, step: 4, value: first.d},
      {name: "kept", kind: "range", label: "variance left ᾱ", min: 0.1, max: 0.98, step: 0.02, value: first.kept},
    ],
    panels: [
      {caption: 'Loss on <b style="color:var(--test)">new samples (thick)</b> and on <b style="color:var(--soft)">training samples (dashes)</b>. Dots: the best denoiser. Uprights: both clocks.'},
      {caption: 'Both clocks over the noise: <b style="color:var(--noise)">memory (thick)</b> and <b style="color:var(--signal)">learning (dashes)</b>.'},
    ],
    compute,
    draw: (view, now) => { curves(view, now); clocks(view, now); say(view, now); },
  });

  function curves(view, {train, test, kept, learned, memory, samples}) {
    const top = Math.max(1.2, 1.1 * kept / (1 - kept)), a = axes({x: [1, 1e8], y: [0, top], logx: true, xlabel: "training time t̄", ylabel: "loss"});
    const pair = list => list.map((y, k) => [s[k], y]);
    view.svg(0, a.frame() + a.upright(learned, {colour: "signal"}) + a.upright(Math.min(memory, 1e8), {colour: "noise"}) +
      a.line([[1, kept], [1e8, kept]], {colour: "soft", width: 1, dash: "2 3"}) + a.line(pair(train), {colour: "soft", width: 2, dash: "6 3"}) +
      a.line(pair(test), {colour: "test", width: 3}), `Losses over training time for ${samples} samples: half is learned at ${short(learned)}, the gap is half its end at ${short(memory)}.`);
  }
  function clocks(view, {samples, d, kept, learned}) {
    const every = Array.from({length: 45}, (_, k) => 0.1 + 0.02 * k), a = axes({x: [0.1, 0.98], y: [1, 1e8], logy: true, xlabel: "variance left ᾱ", ylabel: "training time t̄"});
    view.svg(1, a.frame() + a.line(every.map(k => [k, Math.min(halfGap(k) / rate(samples, k), 1e8)]), {colour: "noise", width: 3}) +
      a.line([[0.1, learned], [0.98, learned]], {colour: "signal", width: 2, dash: "6 3"}) + a.upright(kept, {}), "The time of memory is least in between, that of learning does not depend on the noise.");
  }
  function say(view, {samples, d, best, at, learned, memory, kept}) {
    const start = `${samples} samples in ${d} dimensions: half is learned at s = ${short(learned)}, the gap opens at ${short(memory)}. `;
    view.say(start + (best > 1.02 * kept ? `The clocks are too close: memory sets in before all is learned, and the best loss is ${short(best)} and not ${short(kept)}.` :
      `In between there is time to stop: at s = ${short(at)} the loss on new samples is ${short(best)}, at the end ${short(kept / (1 - kept))}.`));
  }
}

live.clocks = {strengths: kept => ({a: Math.sqrt(a2), v2: own(kept)}), learning, rate, halfGap, marchenkoPastur, losses, mount};
})(globalThis.flbookLive);
