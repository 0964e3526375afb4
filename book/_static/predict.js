/* Predictions that remember. The source is an admonition that reads as text on GitHub and in every notebook:

     :::{admonition} Predict before you go on
     :class: tip predict answer-3
     How strong must the signal be at d = 8000?
     1. 3
     2. 4.2
     3. 6
        - It grows like the fourth root of d.
     :::

   Its items become choices. With `drag`, a single item "from 0 to 2, step 0.05" becomes a slider, and `answer-0p25` is the value 0.25.
   With `mark-y-fig-name` (or mark-x) the chosen value is drawn into that figure. What a reader chose stays in this browser. */
"use strict";
(() => {
  const KEY = "flbook:predictions";
  const page = location.pathname.replace(/^.*\/book\//, "").replace(/\.html$/, "");
  const read = () => { try { return JSON.parse(localStorage.getItem(KEY)) || {}; } catch { return {}; } };
  const write = all => { try { localStorage.setItem(KEY, JSON.stringify(all)); } catch { /* private window: it lasts as long as the page */ } };
  const make = (tag, given = {}) => Object.assign(document.createElement(tag), given);
  const named = (box, pattern) => (new RegExp(`(?:^|\\s)${pattern}(?:\\s|$)`).exec(box.className) || [])[1];
  const number = text => parseFloat(text.replace(/\u2212/g, "-").replace(/[^-\d.e]*(-?\d*\.?\d+(?:e-?\d+)?).*/s, "$1"));
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

  function enhance(box, count) {
    const list = box.querySelector("ol, ul"), given = named(box, "answer-(\\S+)"), drag = box.classList.contains("drag");
    if (!list || !given) return;
    const id = `${page}#${count}`, answer = number(given.replace(/^m/, "-").replace("p", ".")), fieldset = make("fieldset");
    fieldset.append(make("legend", {className: "visually-hidden", textContent: "Your prediction"}));
    const why = list.querySelector("ul, ol");
    let value, set, describe;
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
      const items = [...list.children];
      items.forEach((item, i) => {
        const label = make("label"), input = make("input", {type: "radio", name: `predict-${count}`, value: i + 1});
        item.querySelectorAll("ul, ol").forEach(node => node.remove());
        label.append(input, " ", ...item.childNodes);
        item.dataset.says = typeset(label).trim();
        item.replaceChildren(label);
      });
      fieldset.append(list.cloneNode(false));
      fieldset.lastChild.append(...items);
      value = () => +fieldset.querySelector("input:checked").value;
      set = v => { items[v - 1].querySelector("input").checked = true; };
      describe = v => items[v - 1].dataset.says;
    }
    const keep = make("button", {type: "button", textContent: "Keep my prediction", disabled: !drag});
    const said = make("p", {className: "said"});
    said.setAttribute("role", "status");
    fieldset.append(keep);
    list.replaceWith(fieldset);
    if (why) { why.remove(); why.hidden = true; box.append(why); }
    box.append(said);
    fieldset.addEventListener("change", () => { keep.disabled = false; });

    const size = v => drag ? v : number(describe(v));
    const show = (v, seen) => {
      const drawn = draw(box, size(v), `you: ${describe(v)}`);
      fieldset.disabled = !seen;
      if (!seen) {
        said.textContent = drawn ? "Kept in this browser, and drawn into the figure below. " : "Kept in this browser. ";
        const compare = make("button", {type: "button", textContent: "Compare"});
        compare.onclick = () => { put(v, true); show(v, true); said.tabIndex = -1; said.focus(); };
        said.append(compare);
      } else {
        const right = drag ? Math.abs(v - answer) <= 0.1 * Math.abs(answer) : v === answer;
        said.textContent = right ? `Right: ${describe(drag ? answer : v)}.` : `You said ${describe(v)}; it is ${describe(answer)}.`;
        if (why) why.hidden = false;
        keep.textContent = "Predict again";
      }
    };
    const put = (v, seen) => { const all = read(); all[id] = {value: v, seen}; write(all); };
    keep.onclick = () => { put(value(), false); show(value(), false); };
    const kept = read()[id];
    if (kept && (drag || kept.value <= fieldset.querySelectorAll("input").length)) { set(kept.value); keep.disabled = false; show(kept.value, kept.seen); }
  }

  const start = () => document.querySelectorAll(".admonition.predict").forEach(enhance);
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
})();
