/* Boxes that ask, and remember. The source is an admonition that reads as text on GitHub and in every notebook:

     :::{admonition} Predict before you go on
     :class: tip predict answer-3
     How strong must the signal be at d = 8000?
     1. 3
     2. 4.2
     3. 6
        - It grows like the fourth root of d.
     :::

   Its items become choices. With `drag`, a single item "from 0 to 2, step 0.05" becomes a slider, and `answer-0p25` is the value 0.25.
   With `mark-y-fig-name` (or mark-x) the chosen value is drawn into that figure.

   A box of the class `question` is one of the two at the end of a lecture. Below every choice stands why it is right or wrong; that is
   shown once the choice is checked. The front page counts what was answered.

   What a reader chose stays in this browser, or where the browser refuses, as long as the page is open. */
"use strict";
(() => {
  const KEYS = {predict: "flbook:predictions", question: "flbook:questions"};
  const page = location.pathname.replace(/^.*\/book\//, "").replace(/\.html$/, "");
  const read = kind => {
    try {
      const all = JSON.parse(localStorage.getItem(KEYS[kind]));
      return all && typeof all === "object" && !Array.isArray(all) ? all : {};
    } catch { return {}; }
  };
  const write = (kind, id, kept) => { // whether it lasts
    try { localStorage.setItem(KEYS[kind], JSON.stringify({...read(kind), [id]: kept})); return true; } catch { return false; }
  };
  const forget = () => { try { Object.values(KEYS).forEach(key => localStorage.removeItem(key)); } catch { /* nothing was kept */ } };
  const make = (tag, given = {}) => Object.assign(document.createElement(tag), given);
  const named = (box, pattern) => (new RegExp(`(?:^|\\s)${pattern}(?:\\s|$)`).exec(box.className) || [])[1];
  const number = text => parseFloat(text.replace(/\u2212/g, "-").replace(/[^-\d.e]*(-?\d*\.?\d+(?:e-?\d+)?).*/s, "$1"));
  const isOneOf = (value, items) => Number.isInteger(value) && value >= 1 && value <= items.length;
  const typeset = label => { // what a formula says, before and after MathJax has drawn it
    const copy = label.cloneNode(true);
    copy.querySelectorAll("mjx-assistive-mml, script").forEach(node => node.remove());
    copy.querySelectorAll(".math").forEach(node => node.replaceWith(node.dataset.tex || node.textContent));
    return copy.textContent;
  };

  /* A value drawn into a figure: a line across its axes, with words. */
  function draw(box, value, words) {
    const found = /(?:^|\s)mark-([xy])-(\S+)/.exec(box.className), figure = found && document.getElementById(found[2]);
    const holder = figure && figure.querySelector(".figure[data-axes]");
    if (!holder || !Number.isFinite(value)) return false;
    const axes = JSON.parse(holder.dataset.axes), axis = axes[found[1]], [x0, y0, x1, y1] = axes.box;
    const along = v => axis.log ? Math.log(v) : v, t = (along(value) - along(axis.from)) / (along(axis.to) - along(axis.from));
    holder.querySelectorAll(".prediction").forEach(node => node.remove());
    if (!(t >= 0 && t <= 1)) return false;
    const percent = part => `${(100 * part).toFixed(2)}%`, line = make("div", {className: `prediction on-${found[1]}`});
    Object.assign(line.style, found[1] === "y"
      ? {left: percent(x0), width: percent(x1 - x0), bottom: percent(y0 + t * (y1 - y0))}
      : {left: percent(x0 + t * (x1 - x0)), bottom: percent(y0), height: percent(y1 - y0)});
    line.append(make("span", {textContent: words}));
    holder.append(line);
    return true;
  }

  const group = words => {
    const fieldset = make("fieldset");
    fieldset.append(make("legend", {className: "visually-hidden", textContent: words}));
    return fieldset;
  };
  const status = () => {
    const said = make("p", {className: "said"});
    said.setAttribute("role", "status");
    return said;
  };
  const focus = node => { node.tabIndex = -1; node.focus(); };

  /* The items of a list as choices in a fieldset; what was nested below an item is taken out and returned with it. */
  function choices(list, fieldset, name) {
    const items = [...list.children].map((item, i) => {
      const why = item.querySelector("ul, ol"), label = make("label"), input = make("input", {type: "radio", name, value: i + 1});
      item.querySelectorAll("ul, ol").forEach(node => node.remove());
      label.append(input, " ", ...item.childNodes);
      item.replaceChildren(label);
      return {item, input, why, says: typeset(label).trim()};
    });
    fieldset.append(list.cloneNode(false));
    fieldset.lastChild.append(...items.map(({item}) => item));
    return items;
  }

  function predict(box, count) {
    const list = box.querySelector("ol, ul"), given = named(box, "answer-(\\S+)"), drag = box.classList.contains("drag");
    if (!list || !given) return;
    const id = `${page}#${count}`, answer = number(given.replace(/^m/, "-").replace("p", ".")), fieldset = group("Your prediction");
    let why = list.querySelector("ul, ol"), items, value, set, describe;
    if (drag) {
      const [, from, to, step] = /(-?[\d.]+)\s*to\s*(-?[\d.]+),\s*step\s*([\d.]+)/.exec(list.textContent) || [];
      if (!step) return;
      const input = make("input", {type: "range", min: from, max: to, step, value: (+from + +to) / 2}), shown = make("output", {textContent: input.value});
      const label = make("label");
      input.oninput = () => { shown.textContent = input.value; };
      label.append("Your value: ", shown, input);
      fieldset.append(label);
      value = () => +input.value;
      set = v => { input.value = v; shown.textContent = v; };
      describe = v => String(v);
    } else {
      items = choices(list, fieldset, `predict-${count}`);
      value = () => +fieldset.querySelector("input:checked").value;
      set = v => { items[v - 1].input.checked = true; };
      describe = v => items[v - 1].says;
    }
    const keep = make("button", {type: "button", textContent: "Keep my prediction", disabled: !drag}), said = status();
    fieldset.append(keep);
    list.replaceWith(fieldset);
    if (why) { why.remove(); why.hidden = true; box.append(why); }
    box.append(said);
    fieldset.addEventListener("change", () => { keep.disabled = false; });

    const size = v => drag ? v : number(describe(v));
    const show = (v, seen, lasts) => {
      const drawn = draw(box, size(v), `you: ${describe(v)}`);
      fieldset.disabled = !seen;
      if (!seen) {
        const where = lasts ? "Kept in this browser" : "Kept while this page is open";
        said.textContent = `${where}${drawn ? ", and drawn into the figure below" : ""}. `;
        const compare = make("button", {type: "button", textContent: "Compare"});
        compare.onclick = () => { show(v, true, put(v, true)); focus(said); };
        said.append(compare);
      } else {
        const right = drag ? Math.abs(v - answer) <= 0.1 * Math.abs(answer) : v === answer;
        said.textContent = right ? `Right: ${describe(drag ? answer : v)}.` : `You said ${describe(v)}; it is ${describe(answer)}.`;
        if (why) why.hidden = false;
        keep.textContent = "Predict again";
      }
    };
    const put = (v, seen) => write("predict", id, {value: v, seen});
    keep.onclick = () => { const v = value(); show(v, false, put(v, false)); };
    const kept = read("predict")[id];
    if (kept && (drag ? Number.isFinite(kept.value) : isOneOf(kept.value, items))) {
      set(kept.value);
      keep.disabled = false;
      show(kept.value, kept.seen, true);
    }
  }

  /* A question gives its verdict at once. Who was wrong reads why and chooses again; who is right sees all reasons. */
  function question(box, count) {
    const list = box.querySelector("ol"), answer = +named(box, "answer-(\\d+)");
    if (!list || !isOneOf(answer, list.children)) return;
    const id = `${page}#${count}`, fieldset = group("Your answer"), said = status();
    const items = choices(list, fieldset, `question-${count}`), check = make("button", {type: "button", textContent: "Check", disabled: true});
    items.forEach(({item, why}) => { if (why) { why.hidden = true; item.append(why); } });
    fieldset.append(check);
    list.replaceWith(fieldset);
    box.append(said);
    fieldset.addEventListener("change", () => { check.disabled = false; said.textContent = ""; });

    const show = (v, first) => {
      const right = v === answer, {item, input} = items[v - 1];
      input.checked = true;
      item.classList.add(right ? "right" : "wrong");
      items.forEach(({why}, i) => { if (why && (right || i === v - 1)) why.hidden = false; });
      check.disabled = fieldset.disabled = right;
      said.textContent = right ? `Right${first === answer ? "" : ", though not at once"}.`
        : "Not this one. Below your choice stands why. Choose again.";
      return right;
    };
    let first;
    check.onclick = () => {
      const v = +fieldset.querySelector("input:checked").value;
      first ??= v;
      write("question", id, {value: v, first, right: first === answer});
      if (show(v, first)) focus(said);
    };
    const kept = read("question")[id];
    if (kept && isOneOf(kept.value, items) && isOneOf(kept.first, items)) {
      first = kept.first;
      show(kept.value, first);
    }
  }

  /* On the front page: how many questions were answered, and a button that forgets. */
  function soFar(box) {
    const given = Object.values(read("question")).filter(kept => kept && kept.value), total = +box.dataset.questions;
    const predictions = Object.keys(read("predict")).length;
    box.querySelectorAll(".kept").forEach(node => node.remove());
    if (!given.length && !predictions) return;
    const line = make("p", {className: "kept"}), button = make("button", {type: "button", textContent: "Forget my answers and predictions"});
    const right = given.filter(kept => kept.right).length;
    line.append(`You have answered ${Math.min(given.length, total)} of ${total} questions, ${right} of them right at once. `, button);
    button.onclick = () => { forget(); line.textContent = "Forgotten."; focus(line); };
    box.append(line);
  }

  const start = () => {
    document.querySelectorAll(".admonition.predict").forEach(predict);
    document.querySelectorAll(".admonition.question").forEach(question);
    const count = () => document.querySelectorAll(".questions-so-far").forEach(soFar);
    window.addEventListener("pageshow", count); // also when a reader comes back to it
    window.addEventListener("storage", count); // or answers in another window
    count();
  };
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
})();
