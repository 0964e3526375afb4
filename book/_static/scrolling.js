/* What is wider than its box scrolls, and can be reached and moved by keys, too, as soon as it is seen: folds open later.
   A formula first becomes smaller, as far as it can still be read. */
"use strict";
(() => {
  const BOXES = ".bd-article :is(.cell_output, .output, div.math, pre, figure, .pst-scrollable-table-container)";
  const REACHED = "a[href], button, input, select, summary, canvas, [tabindex]";
  const LEAST = 0.7; // of a formula's size
  const formulas = new Map(); // of each box
  const wide = formula => Math.max(formula.offsetWidth, formula.scrollWidth);

  function fit(formula, room) {
    const size = formula.dataset.size ??= formula.style.fontSize || "100%";
    formula.style.fontSize = size;
    const share = room / wide(formula);
    if (share < 1) formula.style.fontSize = `calc(${size} * ${Math.max(share * 0.99, LEAST).toFixed(3)})`;
  }

  function look(box) {
    const room = box.clientWidth;
    if (room !== +box.dataset.width) { // not again for the height that the new size gives
      box.dataset.width = room;
      const found = formulas.get(box) || [];
      found.filter(one => one.dataset.size || wide(one) > room).forEach(one => fit(one, room));
    }
    const scrolls = box.scrollWidth > room && /auto|scroll/.test(getComputedStyle(box).overflowX);
    if (scrolls && !box.querySelector(REACHED)) box.tabIndex = 0;
  }

  function start() {
    const sizes = new ResizeObserver(changes => changes.forEach(({target}) => look(target)));
    for (const formula of document.querySelectorAll(".bd-article .math > mjx-container")) {
      // a formula within a line is not broken; the paragraph of a choice lies within a line, and has no width of its own
      const box = formula.closest("label") || formula.closest("p, li, td, th, dd, div");
      formulas.set(box, [...formulas.get(box) || [], formula]);
    }
    [...document.querySelectorAll(BOXES), ...formulas.keys()].forEach(box => sizes.observe(box));
  }
  const set = () => Promise.resolve(window.MathJax?.startup?.promise).then(start); // formulas have their widths then
  document.readyState === "complete" ? set() : window.addEventListener("load", set);
})();
