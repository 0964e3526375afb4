/* The printed sheet: what is wider than the paper is made smaller, and a chapter is shown alone. */
({
  /* Formulas and tables that are too wide shrink; returns what is still too wide, as text. */
  fit() {
    const right = document.body.getBoundingClientRect().right + 1;
    for (const node of document.querySelectorAll("mjx-assistive-mml")) node.remove();
    for (const node of document.querySelectorAll("mjx-container, table")) {
      const inside = node.matches("[display=true]") ? node.querySelector("mjx-math") : node;
      const box = inside.getBoundingClientRect(), room = right - 1 - node.parentElement.getBoundingClientRect().left;
      if (box.width > room) node.style.fontSize = `${Math.floor(95 * room / box.width)}%`;
    }
    return [...document.querySelectorAll("pre, code, table, img, mjx-math, p, li")]
      .filter(node => node.getBoundingClientRect().right > right).map(node => `${node.tagName} ${node.closest(".leaf")?.id}: ${node.textContent.slice(0, 80)}`);
  },

  /* Only these leaves; a link to another says its words alone. With nothing, all of them. */
  show(ids, part) {
    const shown = id => !ids || ids.includes(id);
    for (const leaf of document.querySelectorAll(".leaf, .contents li")) leaf.hidden = !shown(leaf.dataset.leaf || leaf.id);
    for (const link of document.querySelectorAll("a[href^='#'], a[data-to]")) {
      link.dataset.to ||= link.getAttribute("href");
      const target = document.getElementById(link.dataset.to.slice(1))?.closest(".leaf");
      target && shown(target.id) ? link.setAttribute("href", link.dataset.to) : link.removeAttribute("href");
    }
    document.querySelector(".cover .part").textContent = part;
  },

  number(pages) {
    for (const line of document.querySelectorAll(".contents li")) line.querySelector(".page").textContent = pages[line.dataset.leaf] ?? "";
  },

  errors: () => [...document.querySelectorAll("mjx-merror")].map(node => `${node.closest(".leaf")?.id}: ${node.textContent}`),
})
