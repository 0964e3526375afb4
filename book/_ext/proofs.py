"""The index of theorems lists what they are called; Sphinx-proof's own lists the labels that authors gave them."""

from sphinx.application import Sphinx
from sphinx.domains import IndexEntry
from sphinx_proof.domain import ProofDomain, ProofIndex


class TheoremIndex(ProofIndex):
    """Titles in alphabetical order, each with its kind and number, and its page."""

    localname = "Index of theorems"
    shortname = "theorems"

    def generate(self, docnames=None) -> tuple[list, bool]:
        """The entries under their first letters, as Sphinx's template wants them."""
        env, letters = self.domain.env, {}
        for label, box in getattr(env, "proof_list", {}).items():
            if docnames is not None and box["docname"] not in docnames:
                continue
            name = box.get("title") or _numbered(env, label, box)
            page = env.titles[box["docname"]].astext()
            entry = IndexEntry(name, 0, box["docname"], label, page, "", _numbered(env, label, box))
            letters.setdefault(_letter(name), []).append(entry)
        return [(letter, sorted(letters[letter], key=_alphabetical)) for letter in sorted(letters)], False


class TitledProofDomain(ProofDomain):
    """Sphinx-proof's domain with another index."""

    indices = [TheoremIndex]


def _alphabetical(entry: IndexEntry) -> str:
    return entry.name.lower()


def _letter(name: str) -> str:
    return next((sign.upper() for sign in name if sign.isalpha()), "–")


def _numbered(env, label: str, box: dict) -> str:
    """Kind and number, as the page shows them."""
    number = env.toc_fignumbers.get(box["docname"], {}).get(box["countertype"], {}).get(label, ())
    return f"{box['realtype'].title()}\u00a0{'.'.join(map(str, number))}".strip()


def remember_titles(app: Sphinx, doctree) -> None:
    """Keep the title of each box beside its label, which is all that Sphinx-proof keeps."""
    known = getattr(app.env, "proof_list", {})
    for box in doctree.findall(lambda node: "realtype" in getattr(node, "attributes", {})):
        if box["label"] in known:
            title = box.next_node(lambda node: node.tagname == "title")
            known[box["label"]]["title"] = title.astext().strip().removeprefix("(").removesuffix(")") if title else ""


def setup(app: Sphinx) -> dict:
    """Register with Sphinx, in place of the index that Sphinx-proof registered."""
    app.setup_extension("sphinx_proof")
    app.add_domain(TitledProofDomain, override=True)
    app.connect("doctree-read", remember_titles)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
