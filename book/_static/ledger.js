/* The filter of the Ledger page: by whole words, headlines only, weak claims only, one mark; it stands in the page's address. A claim has an
   address, too, and its lecture's fold opens for it. Without this script the page is whole. */
(() => {
"use strict";

/* The pieces of text in a row, each on a line of its own: a line break of HTML leaves none in `textContent`. */
function textOf(row) {
  const walk = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), pieces = [];
  while (walk.nextNode()) pieces.push(walk.currentNode.data);
  return pieces.join("\n");
}

const wordsOf = text => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];

function start() {
  const form = document.getElementById("ledger-filter");
  if (!form) return;
  const [text, headlines, weak, mark, status] = ["text", "headlines", "weak", "mark", "status"].map(name => document.getElementById("ledger-" + name));
  const limit = Number(form.dataset.weak);
  const lectures = [...document.querySelectorAll(".ledger-claims")].map(fold => {
    const section = fold.closest("section"), title = wordsOf(section.querySelector("h2").textContent);
    const rows = [...fold.querySelectorAll("tbody tr")].map(row => {
      const says = textOf(row), sharp = says.match(/^([\d.e+]+) half-widths to the nearest rival/m);
      const [, marked] = row.cells[2].textContent.match(/(\p{L}+)/u) || [];
      return {row, marked, words: new Set([...wordsOf(says), ...title]), headline: !!row.cells[0].querySelector("strong"),
              sharpness: sharp ? Number(sharp[1]) : Infinity};
    });
    return {fold, section, rows, opened: false};
  });
  const total = lectures.reduce((sum, {rows}) => sum + rows.length, 0);

  // The theme folds by a class, and says so to a screen reader in its button: so press the button.
  const folded = fold => fold.classList.contains("toggle-hidden");
  function toggle(fold) {
    const button = fold.querySelector("button.toggle-button");
    if (button) button.click();
  }

  function filter() {
    const words = wordsOf(text.value), active = words.length > 0 || headlines.checked || weak.checked || mark.value !== "";
    let shown = 0, pages = 0;
    for (const lecture of lectures) {
      let here = 0;
      for (const {row, marked, words: own, headline, sharpness} of lecture.rows) {
        const fits = (!headlines.checked || headline) && (!weak.checked || sharpness < limit)
          && (!mark.value || marked === mark.value) && words.every(word => own.has(word));
        row.hidden = !fits;
        here += fits;
      }
      lecture.section.hidden = here === 0;
      shown += here;
      pages += here > 0;
      if (active && here && folded(lecture.fold)) {
        toggle(lecture.fold);
        lecture.opened = true;
      } else if (!active && lecture.opened) {
        if (!folded(lecture.fold)) toggle(lecture.fold);
        lecture.opened = false;
      }
    }
    status.textContent = !active ? `All ${total} claims are listed.`
      : shown ? `${shown} of ${total} claims, in ${pages} lecture${pages === 1 ? "" : "s"}.`
      : `No claim of ${total} fits.`;
  }

  function keep() {
    const address = new URL(location.href), asked = new URLSearchParams();
    if (text.value.trim()) asked.set("words", text.value.trim());
    for (const [name, box] of [["headlines", headlines], ["weak", weak]]) if (box.checked) asked.set(name, "1");
    if (mark.value) asked.set("mark", mark.value);
    address.search = asked;
    try { history.replaceState(null, "", address); } catch { /* a browser may refuse this to a file */ }
  }

  function recall() {
    const asked = new URLSearchParams(location.search);
    if (![...asked].length) return; // then what the browser kept from the last visit stands
    text.value = asked.get("words") || "";
    headlines.checked = asked.has("headlines");
    weak.checked = asked.has("weak");
    mark.value = asked.get("mark") || "";
    if (mark.selectedIndex < 0) mark.value = "";
  }

  /* Show the claim that the address names, whatever the filter says. */
  function visit() {
    const anchor = document.getElementById(decodeURIComponent(location.hash.slice(1))), row = anchor && anchor.closest("tr");
    const lecture = row && lectures.find(({rows}) => rows.some(one => one.row === row));
    if (!lecture) return;
    row.hidden = lecture.section.hidden = false;
    if (folded(lecture.fold)) toggle(lecture.fold);
    row.scrollIntoView({block: "center"});
  }

  let waiting;
  const changed = () => { filter(); keep(); };
  text.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(changed, 120); });
  for (const box of [headlines, weak, mark]) box.addEventListener("change", changed);
  form.addEventListener("submit", event => { event.preventDefault(); changed(); });
  window.addEventListener("hashchange", visit);
  form.hidden = false;
  recall();
  filter();
  visit();
}

// After the theme has made its folds, which it does when the page is ready.
if (document.readyState === "complete") start();
else window.addEventListener("load", start);
})();
