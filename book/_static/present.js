/* A lecture as slides, made from its own page: `p` (or the button above the page) begins, arrows move, `c` shows the code of a slide,
   Escape ends. A slide takes what it shows out of the page and gives it back, so that live figures and predictions go on living.
   Shown are the question, the main figure, the model, statements (not proofs), figures with what was found, predictions, and
   what to remember. Every slide is laid out as wide as it must be to fit the screen, and then scaled. */
"use strict";
(() => {
  const LEFT_OUT = /^(Checks|Exercises|Further reading)/;
  const FULL = 600; // characters of text, after which a slide is full
  const STATEMENT = ".proof:is(.theorem, .proposition, .lemma, .corollary, .definition)";
  const make = (tag, given = {}) => Object.assign(document.createElement(tag), given);

  /* What a part of the page is on a slide: a figure, a finding, code, a box, text, or nothing. */
  function kind(node) {
    if (node.matches(".cell")) {
      if (node.querySelector(".cell_output :is(img, canvas, svg, table)")) return "figure";
      if (node.querySelector(".flbook-claim")) return "finding";
      return node.matches(".tag_kind-teach") ? "code" : "";
    }
    if (node.matches(`.admonition.predict, ${STATEMENT}`)) return "box";
    if (node.matches("section, h1, h2, h3, script, style, details, .dropdown, .solution, .exercise, .warning, .proof")) return "";
    return "text";
  }

  const length = node => node.matches("div.math") ? 200 : node.matches("img, figure, table, .pst-scrollable-table-container") ? 400 : node.textContent.length;

  /* The slides of one section; with `all` its text too, which else only a section without anything to show shows the beginning of. */
  function slidesOf(section, heading, all) {
    const found = [];
    let code = [], text = null;
    const add = node => { found.push({heading, body: [node], code, size: 0}); code = []; };
    const findings = nodes => nodes.reduce((sum, node) => sum + node.querySelectorAll(".flbook-claim").length, 0);
    for (const node of section.children) {
      const is = kind(node);
      if (is === "code") (text ? text.code : code).push(node);
      else if (is === "finding" && found.length && findings([...found.at(-1).body, node]) <= 2) { found.at(-1).body.push(node); text = null; }
      else if (is === "figure" || is === "box" || is === "finding") { add(node); text = null; }
      else if (is === "text" && all) {
        const joins = node.matches("ul, ol, div.math"); // what belongs to the words before it
        if (!text || text.size + length(node) > (joins ? 2 * FULL : FULL)) { add(node); text = found.at(-1); } else text.body.push(node);
        text.size += length(node);
      } else if (node.matches("section")) {
        found.push(...slidesOf(node, node.querySelector(":scope > :is(h2, h3, h4)"), all));
        text = null;
      }
    }
    found.at(-1)?.code.push(...code);
    return found;
  }

  function collect(page) {
    const title = page.querySelector(":scope > h1"), parts = [...page.querySelectorAll(":scope > section")];
    const slides = slidesOf({children: [...page.children].filter(node => !node.matches("section"))}, title, true);
    parts.forEach((section, i) => {
      const heading = section.querySelector(":scope > h2");
      if (!heading || LEFT_OUT.test(heading.textContent)) return;
      const shown = slidesOf(section, heading, i === 0 || /^What to remember/.test(heading.textContent));
      slides.push(...(shown.length ? shown : slidesOf(section, heading, true).slice(0, 1)));
    });
    return slides;
  }

  function begin(article) {
    const page = article.querySelector(":scope > section"), slides = collect(page);
    const stage = make("dialog", {className: "presenting"}), slide = make("div", {className: "slide"}), said = make("p", {className: "place"});
    said.setAttribute("role", "status");
    stage.setAttribute("aria-label", "Presentation");
    stage.append(slide, said);
    article.append(stage);
    let now = 0, away = [];

    const giveBack = () => { away.forEach(([node, mark]) => mark.replaceWith(node)); away = []; slide.replaceChildren(); };
    const take = node => {
      const mark = document.createComment("");
      node.replaceWith(mark);
      away.push([node, mark]);
      slide.append(node);
    };
    /* As wide as it must be: a wider slide holds more lines, and is scaled down to the screen. */
    function fit() {
      const room = {width: stage.clientWidth * 0.94, height: stage.clientHeight * 0.9};
      slide.style.transform = "none";
      for (let width = 960; ; width *= 1.06) {
        slide.style.width = `${width}px`;
        const scale = room.width / Math.max(width, slide.scrollWidth);
        const clipped = [...slide.querySelectorAll("div.math, pre, .pst-scrollable-table-container")].some(box => box.scrollWidth > box.clientWidth);
        if ((clipped || slide.offsetHeight * scale > room.height) && width < 6000) continue;
        slide.style.transform = `scale(${Math.min(scale, room.height / slide.offsetHeight)})`;
        return;
      }
    }
    function show(to) {
      now = Math.max(0, Math.min(slides.length - 1, to));
      giveBack();
      const {heading, body, code} = slides[now], coded = stage.classList.contains("code") && code.length;
      const words = make(now ? "h2" : "h1", {className: "slide-title"});
      words.append(...heading.cloneNode(true).childNodes);
      words.querySelectorAll(".headerlink").forEach(link => link.remove());
      slide.append(words);
      (coded ? code : body).forEach(take);
      said.textContent = `${now + 1} / ${slides.length}`;
      fit();
    }
    function end() {
      const here = slides[now].body[0];
      giveBack();
      removeEventListener("resize", fit);
      document.removeEventListener("fullscreenchange", left);
      if (document.fullscreenElement) document.exitFullscreen();
      stage.remove();
      here.scrollIntoView({block: "center"});
    }
    const left = () => { if (!document.fullscreenElement && stage.open) stage.close(); };
    const moves = {
      ArrowRight: () => show(now + 1), PageDown: () => show(now + 1), " ": () => show(now + 1), ArrowLeft: () => show(now - 1), PageUp: () => show(now - 1),
      Home: () => show(0), End: () => show(slides.length - 1), c: () => { stage.classList.toggle("code"); show(now); },
      p: () => stage.close(), Escape: () => stage.close(),
    };
    stage.addEventListener("keydown", event => {
      const move = !elsewhere(event) && moves[event.key];
      if (move) { event.preventDefault(); event.stopPropagation(); move(); }
    });
    stage.addEventListener("close", end);
    stage.addEventListener("load", fit, true);
    addEventListener("resize", fit);
    stage.showModal();
    document.documentElement.requestFullscreen?.().then(() => document.addEventListener("fullscreenchange", left)).catch(() => {});
    show(0);
  }

  /* A key that belongs to a field, a slider or a canvas, or to the browser. */
  const elsewhere = event => event.ctrlKey || event.metaKey || event.altKey || event.isComposing ||
    event.target.matches("input, select, textarea, canvas, [contenteditable]") || event.key === " " && event.target.matches("button, summary, a");

  function start() {
    const article = document.querySelector("article.bd-article"), buttons = document.querySelector(".article-header-buttons");
    if (!article?.querySelector(":scope > section .cell_output")) return; // no lecture
    addEventListener("keydown", event => {
      if (event.key === "p" && !elsewhere(event) && !document.querySelector("dialog[open]")) { event.preventDefault(); begin(article); }
    });
    const button = make("button", {type: "button", className: "btn btn-sm present-button", title: "Present this page as slides (p)", textContent: "Present"});
    button.onclick = () => begin(article);
    buttons?.prepend(button);
  }
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
})();
