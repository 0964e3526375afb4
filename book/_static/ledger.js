/* The filter of the Ledger page: by text, headlines only, weak claims only. Without this script the page is whole. */
(() => {
"use strict";

/* The pieces of text in a row, each on a line of its own: a line break of HTML leaves none in `textContent`. */
function textOf(row) {
  const walk = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), pieces = [];
  while (walk.nextNode()) pieces.push(walk.currentNode.data);
  return pieces.join("\n");
}

function start() {
  const form = document.getElementById("ledger-filter");
  if (!form) return;
  const [text, headlines, weak, status] = ["text", "headlines", "weak", "status"].map(name => document.getElementById("ledger-" + name));
  const limit = Number(form.dataset.weak);
  const lectures = [...document.querySelectorAll(".ledger-claims")].map(fold => ({
    fold, section: fold.closest("section"), opened: false,
    rows: [...fold.querySelectorAll("tbody tr")].map(row => {
      const words = textOf(row), sharp = words.match(/^([\d.e+]+) half-widths to the nearest rival/m);
      return {row, words: words.toLowerCase(), headline: !!row.cells[0].querySelector("strong"),
              sharpness: sharp ? Number(sharp[1]) : Infinity};
    }),
  }));
  const total = lectures.reduce((sum, {rows}) => sum + rows.length, 0);

  // The theme folds by a class, and says so to a screen reader in its button: so press the button.
  const folded = fold => fold.classList.contains("toggle-hidden");
  function toggle(fold) {
    const button = fold.querySelector("button.toggle-button");
    if (button) button.click();
  }

  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = words.length > 0 || headlines.checked || weak.checked;
    let shown = 0, pages = 0;
    for (const lecture of lectures) {
      let here = 0;
      const title = lecture.section.querySelector("h2").textContent.toLowerCase();
      for (const {row, words: own, headline, sharpness} of lecture.rows) {
        const fits = (!headlines.checked || headline) && (!weak.checked || sharpness < limit) &&
          words.every(word => own.includes(word) || title.includes(word));
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

  let waiting;
  text.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  for (const box of [headlines, weak]) box.addEventListener("change", filter);
  form.addEventListener("submit", event => { event.preventDefault(); filter(); });
  form.hidden = false;
  if (text.value || headlines.checked || weak.checked) filter(); // what the browser kept from the last visit
  else status.textContent = `All ${total} claims are listed.`;
}

// After the theme has made its folds, which it does when the page is ready.
if (document.readyState === "complete") start();
else window.addEventListener("load", start);
})();
