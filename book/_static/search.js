/* The book's search, on Sphinx's index: a word in a title, in the line under it or in what the glossary calls a page outranks any
   number of words in prose, and excerpts come as scripts, which a browser loads from the file system, too (book/_ext/finding.py). */
"use strict";
const flbookSearch = (() => {
  const SHOWN = 220; // characters of an excerpt
  const SECTIONS = 2; // of one page among the results
  let pages = {};
  const texts = new Map(), waiting = new Map(), stems = new Map();
  const make = (tag, given = {}) => Object.assign(document.createElement(tag), given);

  /* A formula's source as a line of text: letters and a few signs for their commands, without braces and spaces. */
  const GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma tau upsilon phi chi psi omega".split(" ");
  const SIGNS = {approx: "≈", le: "≤", ge: "≥", to: "→", infty: "∞", sum: "Σ", propto: "∝", times: "×", cdot: "·", in: "∈", sqrt: "√", pm: "±", lVert: "‖",
    rVert: "‖", langle: "⟨", rangle: "⟩", varepsilon: "ε", Phi: "Φ", Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Sigma: "Σ", Omega: "Ω", ll: "≪", gg: "≫"};
  const readable = text => text.replace(/\\([A-Za-z]+)\s?/g, (_, name) => GREEK.includes(name) ? String.fromCharCode(0x3b1 + GREEK.indexOf(name)) : SIGNS[name] || "")
    .replace(/\\[^A-Za-z]|[{}]/g, "");

  function stem(word) {
    if (!stems.has(word)) stems.set(word, new Stemmer().stemWord(word));
    return stems.get(word);
  }
  const split = text => splitQuery(text.toLowerCase());
  const stemmed = text => split(text).map(stem);
  function wordsOf(query) {
    const all = split(query), telling = all.filter(word => !stopwords.includes(word));
    return [...new Set((telling.length ? telling : all).map(stem))];
  }

  /* The pages whose prose holds a word, or one that begins with it, by the index's number. */
  function inProse({terms, titleterms}, word) {
    const found = new Set(), add = files => [].concat(files).forEach(file => found.add(file));
    for (const known of [terms, titleterms]) {
      if (Object.hasOwn(known, word)) add(known[word]);
      else if (word.length > 2) Object.keys(known).filter(term => term.startsWith(word)).forEach(term => add(known[term]));
    }
    return found;
  }

  const begins = (list, word) => list.includes(word) || word.length > 3 && list.some(other => other.startsWith(word));
  const holds = (list, words) => (" " + list.join(" ") + " ").includes(" " + words.join(" ") + " ");
  const equal = (list, words) => list.join(" ") === words.join(" ");

  /* How well a page is named by the words: all of them count most, then whether they are its whole name. */
  function named({title, line, called, lecture}, words) {
    const names = [title, ...line.split(" · "), ...called].map(stemmed), all = names.flat();
    const known = words.filter(word => begins(all, word)).length, topic = names[1] || [];
    if (!known) return 0;
    const whole = names.some(name => equal(name, words)) ? 300 : names.some(name => holds(name, words)) ? 200 : 0;
    const share = topic.filter(word => words.includes(word)).length / Math.max(topic.length, 1);
    return 100 * known + (known === words.length ? 1000 : 0) + whole + 20 * share + (lecture ? 50 : 0);
  }

  /* Pages, their sections and the glossary's entries, the best first: {page, anchor, title, line, score}. */
  function find(index, query) {
    const words = wordsOf(query), prose = words.map(word => inProse(index, word)), numbers = new Map(index.docnames.map((name, i) => [name, i]));
    const scored = Object.entries(pages).map(([page, about]) => {
      const all = stemmed([about.title, about.line, ...about.called].join(" ")), number = numbers.get(page);
      const count = words.filter((word, i) => begins(all, word) || prose[i].has(number)).length;
      return {page, anchor: "", ...about, count, score: named(about, words) + count};
    });
    const most = Math.max(...scored.map(({count}) => count));
    return !words.length || !most ? [] : [...scored.filter(({count}) => count === most), ...parts(index, words)].sort((a, b) => b.score - a.score);
  }

  function parts({docnames, alltitles, indexentries}, words) {
    const found = [], many = new Map(), titles = new Set(Object.values(pages).map(({title}) => title));
    const fits = title => { const own = stemmed(title); return words.every(word => begins(own, word)) && own; };
    for (const [title, places] of Object.entries(alltitles)) {
      const own = fits(title);
      if (own) for (const [file, id] of places) {
        const page = docnames[file], count = many.get(page) || 0;
        if (!id || !pages[page] || count >= SECTIONS || titles.has(title)) continue; // the ledger's sections are titles of lectures
        many.set(page, count + 1);
        found.push({page, anchor: id, title: readable(title.trim().replace(/^\((.*)\)$/s, "$1")), line: "in " + pages[page].title, score: 400 + 50 * holds(own, words)});
      }
    }
    for (const [entry, places] of Object.entries(indexentries)) {
      if (fits(entry)) for (const [file, id] of places) found.push({page: docnames[file], anchor: id, title: entry, line: "in the glossary", score: 500});
    }
    return found;
  }

  /* The piece of a text that holds most of the words, as text and marks. */
  function excerpt(text, words, from = 0) {
    const asked = word => words.some(one => begins([stem(word.toLowerCase())], one));
    const hits = [...text.slice(from).matchAll(/[\p{L}\p{N}_]+/gu)].filter(([word]) => asked(word)).map(hit => ({at: from + hit.index, word: hit[0]}));
    const rich = ({at}) => new Set(hits.filter(hit => hit.at >= at && hit.at < at + SHOWN).map(({word}) => stem(word.toLowerCase()))).size;
    const best = hits.reduce((best, hit) => { const size = rich(hit); return size > best.size ? {at: hit.at, size} : best; }, {at: from, size: 0});
    const begin = Math.max(text.lastIndexOf(" ", Math.max(best.at - SHOWN / 4, 0)) + 1, 0), far = begin + SHOWN;
    const end = far < text.length ? Math.max(text.lastIndexOf(" ", far), begin) : text.length;
    const nodes = [begin ? "… " : ""];
    let at = begin;
    for (const hit of hits) if (hit.at >= begin && hit.at + hit.word.length <= end) {
      nodes.push(text.slice(at, hit.at), make("mark", {textContent: hit.word}));
      at = hit.at + hit.word.length;
    }
    nodes.push(text.slice(at, end), end < text.length ? " …" : "");
    return nodes;
  }

  function ask(page, fill) { // calls it with the page's text, now or when its script is there
    if (texts.has(page)) return fill(texts.get(page));
    if (waiting.has(page)) return waiting.get(page).push(fill);
    waiting.set(page, [fill]);
    document.head.append(make("script", {src: `${document.documentElement.dataset.content_root}_static/search/${page.replaceAll("/", "-")}.js`}));
  }

  function item({page, anchor, title, line}, words, seen) {
    const row = make("li"), link = make("a", {textContent: title}), context = make("p", {className: "context"});
    link.href = document.documentElement.dataset.content_root + page + ".html" + (anchor && "#" + anchor);
    row.append(link, make("span", {className: "line", textContent: line}), context);
    row.show = () => ask(page, text => context.replaceChildren(...excerpt(text, words, anchor ? Math.max(text.indexOf(title), 0) : 0)));
    seen.observe(row);
    return row;
  }

  function show(query) {
    const results = find(Search._index, query), words = wordsOf(query);
    const seen = new IntersectionObserver(entries => {
      for (const {isIntersecting, target} of entries) if (isIntersecting) { seen.unobserve(target); target.show(); }
    });
    Search.stopPulse();
    Search.title.textContent = "Search results";
    Search.status.textContent = !words.length ? "There is no word in this." : !results.length ? "No page has this word. Try another, or a part of it."
      : `${results.length} place${results.length === 1 ? "" : "s"}, the best first.`;
    Search.output.append(...results.map(result => item(result, words, seen)));
  }

  Search.query = show;
  return {
    find: query => find(Search._index, query),
    lines: () => Object.fromEntries(Object.entries(pages).map(([page, {line}]) => [page, line])),
    pages: all => { pages = all; },
    text: (page, text) => { texts.set(page, readable(text)); (waiting.get(page) || []).forEach(fill => fill(texts.get(page))); },
  };
})();
