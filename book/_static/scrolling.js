/* What is wider than its box scrolls, and can be reached and moved by keys, too, as soon as it is seen: folds open later. */
"use strict";
(() => {
  const BOXES = ".bd-article :is(.cell_output, .output, div.math, pre, figure, .pst-scrollable-table-container)";
  const REACHED = "a[href], button, input, select, summary, canvas, [tabindex]";

  function look(box) {
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
