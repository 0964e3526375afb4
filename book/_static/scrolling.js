/* What is wider than its box scrolls, and can be reached and moved by keys, too, as soon as it is seen: folds open later.
   A formula first becomes smaller, as far as it can still be read. */
"use strict";
(() => {
  const BOXES = ".bd-article :is(.cell_output, .output, div.math, pre, figure, .pst-scrollable-table-container)";
  const REACHED = "a[href], button, input, select, summary, canvas, [tabindex]";
  const LEAST = 0.7; // of a formula's size

  function shrink(formula, share) {
    const set = formula.dataset.set ||= formula.style.fontSize || "100%";
    formula.style.fontSize = share < 1 ? `calc(${set} * ${Math.max(share * 0.99, LEAST).toFixed(3)})` : set;
  }

  function fit(formula) {
    shrink(formula, 1);
    shrink(formula, formula.clientWidth / formula.scrollWidth);
  }

  function fitLines() { // a formula within a line is not broken; first all are measured, then set
    const found = [...document.querySelectorAll(".bd-article span.math > mjx-container")].filter(one => one.offsetWidth);
    const shares = found.map(one => one.closest("p, li, td, th, dd, div").clientWidth / one.offsetWidth * (one.dataset.share || 1));
    found.forEach((one, i) => {
      if (shares[i] >= 1 && !one.dataset.share) return;
      one.dataset.share = Math.min(1, Math.max(shares[i] * 0.99, LEAST));
      shrink(one, shares[i]);
    });
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
    fitLines();
    window.addEventListener("resize", fitLines);
    document.addEventListener("toggle", fitLines, true); // folds
    document.addEventListener("click", () => requestAnimationFrame(fitLines)); // dropdowns
  }
  const set = () => Promise.resolve(window.MathJax?.startup?.promise).then(start); // formulas have their widths then
  document.readyState === "complete" ? set() : window.addEventListener("load", set);
})();
