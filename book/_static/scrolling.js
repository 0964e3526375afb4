/* What is wider than its box scrolls, and can be reached and moved by keys, too, as soon as it is seen: folds open later.
   A displayed formula first becomes smaller, as far as it can still be read. */
"use strict";
(() => {
  const BOXES = ".bd-article :is(.cell_output, .output, div.math, pre, figure, .pst-scrollable-table-container)";
  const REACHED = "a[href], button, input, select, summary, canvas, [tabindex]";
  const LEAST = 0.7; // of a formula's size

  function fit(formula) {
    const set = formula.dataset.set ||= formula.style.fontSize || "100%";
    formula.style.fontSize = set;
    const share = formula.clientWidth / formula.scrollWidth;
    if (share < 1) formula.style.fontSize = `calc(${set} * ${Math.max(share * 0.99, LEAST).toFixed(3)})`;
  }

  function look(box) {
    const formula = box.matches("div.math") && box.querySelector("mjx-container");
    if (formula && box.clientWidth !== +box.dataset.width) { // not again for the height that the new size gives
      box.dataset.width = box.clientWidth;
      fit(formula);
    }
    const scrolls = box.scrollWidth > box.clientWidth && /auto|scroll/.test(getComputedStyle(box).overflowX);
    if (scrolls && !box.querySelector(REACHED)) box.tabIndex = 0;
  }

  function start() {
    const sizes = new ResizeObserver(changes => changes.forEach(({target}) => look(target)));
    document.querySelectorAll(BOXES).forEach(box => sizes.observe(box));
  }
  const set = () => Promise.resolve(window.MathJax?.startup?.promise).then(start); // formulas have their widths then
  document.readyState === "complete" ? set() : window.addEventListener("load", set);
})();
