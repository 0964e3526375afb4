/* The filter of the Atlas page: by data, network and rule; it stands in the page's address. Without this script the page is whole. */
(() => {
"use strict";

const FIELDS = ["data", "network", "rule"];

function start() {
  const form = document.getElementById("atlas-filter"), status = document.getElementById("atlas-status");
  if (!form) return;
  const asked = Object.fromEntries(FIELDS.map(field => [field, document.getElementById("atlas-" + field)]));
  const entries = [...document.querySelectorAll(".atlas-entry")];
  const sections = [...new Set(entries.map(entry => entry.closest("section")))];

  function filter() {
    for (const entry of entries) {
      entry.hidden = FIELDS.some(field => asked[field].value && entry.dataset[field] !== asked[field].value);
    }
    for (const section of sections) section.hidden = [...section.querySelectorAll(".atlas-entry")].every(entry => entry.hidden);
    const shown = entries.filter(entry => !entry.hidden).length;
    status.textContent = shown === entries.length ? `All ${shown} borders and laws are shown.`
      : shown ? `${shown} of ${entries.length} borders and laws.` : `None of ${entries.length} fits: choose "any" somewhere.`;
  }

  function keep() {
    const address = new URL(location.href), chosen = new URLSearchParams();
    for (const field of FIELDS) if (asked[field].value) chosen.set(field, asked[field].value);
    address.search = chosen;
    try { history.replaceState(null, "", address); } catch { /* a browser may refuse this to a file */ }
  }

  function recall() {
    const chosen = new URLSearchParams(location.search);
    for (const field of FIELDS) {
      asked[field].value = chosen.get(field) || "";
      if (asked[field].selectedIndex < 0) asked[field].value = "";
    }
  }

  for (const field of FIELDS) asked[field].addEventListener("change", () => { filter(); keep(); });
  form.addEventListener("submit", event => event.preventDefault());
  form.hidden = false;
  recall();
  filter();
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
})();
