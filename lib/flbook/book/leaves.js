/* The built pages as leaves, for paper and for readers without scripts: folded parts left out, figures as stills, links and ids
   of one name space. Called with the pages ({name, html, address, depth}), the folder of the built pages and whether every leaf
   is a file of its own; returns the leaves ({name, title, headings, html}). Needs MathJax only if formulas are to become MathML. */
async ([pages, site, files]) => {
  const GONE = "script, link, noscript, template, button, input, form, canvas, .headerlink, .only-dark, svg.narrow, details:not([open])";
  const key = name => name.replaceAll("/", ".");
  const element = (doc, tag, given) => Object.assign(doc.createElement(tag), given);
  const hadFolds = [];

  /* A heading as plain words, for outlines: of its formulas what a line of text can show. */
  const LETTERS = {alpha: "α", eta: "η", gamma: "γ", lambda: "λ", mu: "μ", rho: "ρ", sigma: "σ", theta: "θ", xi: "ξ", Phi: "Φ", approx: "≈", to: "→", sqrt: "√", infty: "∞", cdot: "·"};
  function said(heading) {
    const copy = heading.cloneNode(true);
    for (const node of copy.querySelectorAll(".math")) {
      node.textContent = node.textContent.replace(/\\[()]/g, "").replace(/\\frac(\w)(\w)/g, "$1/$2").replace(/\\(mathrm|text|operatorname)\{(\w*)\}/g, "$2")
        .replace(/\\[,;!]/g, " ").replace(/\\([A-Za-z]+)\s?/g, (all, name) => LETTERS[name] ?? name).replace(/\{(.)\}/g, "$1").replace(/\{/g, "(").replace(/\}/g, ")");
    }
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  /* What a fold says while it is closed stands for it only where a section would be left empty. */
  function unfold(article) {
    for (const claim of article.querySelectorAll("details.flbook-claim")) {
      const line = element(claim.ownerDocument, "p", {className: "claim"});
      line.append(...claim.querySelector("summary").childNodes);
      claim.replaceWith(line);
    }
    article.querySelectorAll("details.checks").forEach(fold => fold.parentElement.remove());
    for (const fold of article.querySelectorAll(".admonition.dropdown")) {
      hadFolds.push([fold.parentElement, fold.querySelector(".admonition-title").textContent]);
      fold.remove();
    }
    for (const [section, title] of hadFolds.splice(0)) {
      if (section.matches("section") && [...section.children].every(child => child.matches("h2, h3"))) {
        section.append(element(section.ownerDocument, "p", {className: "folded", textContent: title}));
      }
    }
  }

  function stills(article) {
    for (const picture of article.querySelectorAll("picture")) {
      const image = picture.querySelector("img"), wide = picture.querySelector("source");
      if (wide) image.setAttribute("src", wide.getAttribute("srcset"));
      picture.replaceWith(image);
    }
    for (const style of article.querySelectorAll("style")) {
      const drawn = style.nextElementSibling?.querySelector("svg.wide");
      drawn?.setAttribute("role", "img");
      drawn?.prepend(Object.assign(style.ownerDocument.createElementNS(drawn.namespaceURI, "style"), {textContent: style.textContent}));
      style.remove();
    }
  }

  /* The number of the right choice, which a page with scripts keeps to itself until it is asked. */
  function answers(article) {
    for (const box of article.querySelectorAll(".predict")) {
      const given = /(?:^|\s)answer-(\S+)/.exec(box.className)?.[1];
      if (given) box.append(element(box.ownerDocument, "p", {className: "answer", textContent: `Answer: ${given.replace(/^m/, "\u2212").replace("p", ".")}`}));
    }
  }

  function bare(article) {
    article.querySelectorAll(GONE).forEach(node => node.remove());
    const comments = article.ownerDocument.createTreeWalker(article, NodeFilter.SHOW_COMMENT), found = [];
    while (comments.nextNode()) found.push(comments.currentNode);
    found.forEach(node => node.remove());
    for (const node of [article, ...article.querySelectorAll("*")]) {
      for (const {name} of [...node.attributes]) {
        const drawn = node.namespaceURI.endsWith("/svg");
        if (/^(on|data-)/.test(name) || (!drawn && /^(style|role|tabindex|srcset|loading|open|aria-)/.test(name))) node.removeAttribute(name);
      }
    }
    for (const cell of article.querySelectorAll("div.cell")) if (!cell.textContent.trim() && !cell.querySelector("img, svg")) cell.remove();
  }

  /* An id is the page's name and the page's own; Sphinx's extensions give some of theirs twice. */
  function identify(article, name) {
    const seen = new Set();
    for (const node of article.querySelectorAll("[id]")) {
      seen.has(node.id) ? node.removeAttribute("id") : seen.add(node.id);
    }
    for (const node of article.querySelectorAll("[id]")) node.id = `${key(name)}.${node.id}`;
    article.id = key(name);
  }

  function deepen(article, by) {
    if (!by) return;
    for (const heading of article.querySelectorAll("h1, h2, h3, h4, h5")) {
      const lower = element(heading.ownerDocument, `h${+heading.tagName[1] + by}`, {className: heading.className});
      lower.append(...heading.childNodes);
      heading.replaceWith(lower);
    }
  }

  const leaves = pages.map(({name, html, address, depth}) => {
    const article = new DOMParser().parseFromString(html, "text/html").querySelector("article.bd-article > section");
    unfold(article);
    stills(article);
    answers(article);
    bare(article);
    const title = said(article.querySelector("h1"));
    article.firstId = article.id;
    identify(article, name);
    const headings = [...article.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(said);
    deepen(article, depth);
    article.classList.add("leaf", `depth-${depth}`);
    return {name, title, headings, address, article};
  });

  /* Where a link leads: a leaf, a place on it, another host, or nowhere any more. */
  const places = new Map(leaves.map(leaf => [leaf.address, leaf]));
  function led(link, leaf) {
    const wanted = new URL(link.getAttribute("href"), leaf.address), page = places.get(wanted.href.split("#")[0]);
    if (!page) return wanted.protocol.startsWith("http") ? wanted.href : null;
    const id = decodeURIComponent(wanted.hash.slice(1)), own = `${key(page.name)}.${id}`;
    const there = id && id !== page.article.firstId ? page.article.querySelector(`[id="${CSS.escape(own)}"]`) && own : key(page.name);
    return there && (files ? `${page === leaf ? "" : `${key(page.name)}.xhtml`}#${there}` : `#${there}`);
  }
  for (const leaf of leaves) {
    for (const link of leaf.article.querySelectorAll("a[href]")) {
      const to = led(link, leaf);
      to ? link.setAttribute("href", to) : link.namespaceURI.endsWith("/svg") ? link.removeAttribute("href") : link.replaceWith(...link.childNodes);
    }
    for (const link of leaf.article.querySelectorAll("a:not([href])")) if (!link.id) link.replaceWith(...link.childNodes);
    for (const image of leaf.article.querySelectorAll("img")) image.setAttribute("src", new URL(image.getAttribute("src"), leaf.address).href);
  }

  /* Formulas as MathML, each of them once; the source stays as what a reader without MathML says. */
  const known = new Map();
  async function mathml(node) {
    const display = node.matches("div"), tex = node.textContent.trim().replace(/^\\[([]|\\[)\]]$/g, "").trim(), wanted = `${display} ${tex}`;
    if (!known.has(wanted)) known.set(wanted, await MathJax.tex2mmlPromise(tex, {display}));
    node.innerHTML = known.get(wanted).replace(/\s*\n\s*/g, "");
    node.querySelectorAll("*").forEach(part => [...part.attributes].forEach(({name}) => name.startsWith("data-") && part.removeAttribute(name)));
    node.firstElementChild?.setAttribute("alttext", tex);
  }
  const written = new XMLSerializer();
  for (const leaf of leaves) {
    if (files && window.MathJax) for (const node of leaf.article.querySelectorAll(".math")) await mathml(node);
    leaf.html = files ? written.serializeToString(leaf.article) : leaf.article.outerHTML;
  }
  return leaves.map(({name, title, headings, html}) => ({name, title, headings, html}));
}
