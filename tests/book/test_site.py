"""The site that is published: versions beside each other, and what their pages have only there."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import yaml

from flbook.book import press, site

ROOT = Path(__file__).parents[2]


@pytest.fixture
def parts(tmp_path) -> Path:
    """A folder with all that a version needs."""
    for name in ("html/index.html", "html/book/index.html", "html/.built", "pdf/feature-learning.pdf", "pdf/xor.pdf",
                 "feature-learning.epub"):
        file = tmp_path / "_build" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path / "_build"


def test_an_version_has_its_prints_beside_its_index_and_takes_the_place_of_the_one_before(parts, tmp_path):
    (tmp_path / "site/latest").mkdir(parents=True)
    (tmp_path / "site/latest/old.html").touch()
    site.add(parts, tmp_path / "site", "latest")
    files = (file for file in (tmp_path / "site").rglob("*") if file.is_file())
    found = {file.relative_to(tmp_path / "site").as_posix() for file in files}
    assert found == {f"latest/{name}" for name in ("index.html", "book/index.html", "feature-learning.pdf", "xor.pdf",
                                                   "feature-learning.epub")}


def test_the_switch_lists_versions_newest_first(parts, tmp_path):
    for version in ("0.8.0", "0.9.0", "latest", "0.10.0"):
        site.add(parts, tmp_path / "site", version)
    site.finish(tmp_path / "site", "Feature Learning", "https://example.org/book")
    listed = json.loads((tmp_path / "site/switcher.json").read_text())
    assert [one["version"] for one in listed] == ["latest", "0.10.0", "0.9.0", "0.8.0"]
    assert [one["version"] for one in listed if one["preferred"]] == ["latest"]
    assert listed[1]["url"] == "https://example.org/book/0.10.0/"
    assert 'url=latest/"' in (tmp_path / "site/index.html").read_text()


@pytest.mark.parametrize("lacking", ["html/index.html", "pdf/feature-learning.pdf", "feature-learning.epub"])
def test_an_version_that_lacks_a_part_is_refused_in_a_sentence(parts, tmp_path, lacking):
    (parts / lacking).unlink()
    with pytest.raises(ValueError, match=f"the site lacks {lacking}: run `make site`."):
        site.add(parts, tmp_path / "site", "latest")
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("version", ["", "v0.1.0", "../book", "main"])
def test_an_version_of_another_name_is_refused(parts, tmp_path, version):
    with pytest.raises(ValueError, match="a version of the site is 'latest' or as 1.2.0"):
        site.add(parts, tmp_path / "site", version)


def test_where_the_site_is_served(monkeypatch):
    monkeypatch.delenv("FLBOOK_SITE", raising=False)
    assert site.address("https://github.com/Owner/name") == "https://owner.github.io/name"
    with pytest.raises(ValueError, match="Set FLBOOK_SITE"):
        site.address("https://example.org/owner/name")
    monkeypatch.setenv("FLBOOK_SITE", "https://book.example.org/")
    assert site.address("https://example.org/owner/name") == "https://book.example.org"


@pytest.fixture
def published(monkeypatch):
    """The extension, as if the pages were published."""
    monkeypatch.setenv("FLBOOK_VERSION", "0.2.0")
    monkeypatch.delenv("FLBOOK_SITE", raising=False)
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    return import_module("published")


def app(tmp_path, base="https://owner.github.io/name/latest/"):
    """As much of Sphinx as the extension asks for: the book's own pages, and a folder of its own to write to."""
    builder = SimpleNamespace(get_target_uri=lambda page: f"{page}.html")
    env = SimpleNamespace(doc2path=lambda page: next(ROOT.glob(f"{page}.*")))
    config = SimpleNamespace(html_baseurl=base, html_title="Feature Learning")
    return SimpleNamespace(srcdir=ROOT, outdir=tmp_path, builder=builder, env=env, config=config)


def test_the_address_of_every_version_s_pages_is_the_latest_s(published):
    config = SimpleNamespace(html_theme_options={"repository_url": "https://github.com/owner/name", "a": 1})
    published.say_where(None, config)
    assert config.html_baseurl == "https://owner.github.io/name/latest/"
    assert config.html_theme_options["switcher"] == {"json_url": "../switcher.json", "version_match": "0.2.0"}
    assert config.html_theme_options["a"] == 1 and "version-switcher.html" in config.html_sidebars["**"]


@pytest.mark.parametrize(("name", "chapter"), [("book/benign_overfitting/xor", ["../../benign_overfitting.pdf"]),
                                               ("book/primer", [])])
def test_the_menu_of_downloads_offers_what_is_printed(published, tmp_path, name, chapter):
    printing = {"label": "download-pdf-button", "text": ".pdf", "url": ""}
    menu = {"label": "download-buttons", "buttons": [printing]}
    up = "../" * name.count("/")
    context = {"header_buttons": [{"label": "other"}, menu], "pathto": lambda file, resource: up + file}
    published.offer_prints(app(tmp_path), name, "", context, None)
    found = [button["url"] for button in menu["buttons"]]
    assert printing["text"] == "Print page"
    assert found == ["", *chapter, f"{up}feature-learning.pdf", f"{up}feature-learning.epub"]
    assert set(press.chapters(ROOT)) >= {"benign_overfitting"}


def tags(context: dict) -> dict[str, str]:
    return dict(re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)"', context["metatags"]))


def test_a_shared_lecture_shows_its_title_its_first_sentences_and_its_main_figure(published, tmp_path):
    body = ('<h1>3.2 A &amp; "b"</h1><p><em>ReLU networks · Kou et al. 2023, more than forty characters</em></p>'
            "<p>Twenty labels, <strong>two</strong> of them wrong. What is it that happens?</p>")  # fmt: skip
    context = {"title": '3.2. A &amp; "b"', "body": body, "metatags": ""}
    published.describe(app(tmp_path), "book/benign_overfitting/relu_heatmap", "", context, object())
    found = tags(context)
    assert found["og:title"] == "A &amp; &quot;b&quot;"
    assert found["og:description"] == "Twenty labels, two of them wrong. What is it that happens?"
    assert found["description"] == found["og:description"]
    assert found["og:url"] == "https://owner.github.io/name/latest/book/benign_overfitting/relu_heatmap.html"
    name = found["og:image"].removeprefix("https://owner.github.io/name/latest/")
    assert (tmp_path / name).read_bytes().startswith(b"\x89PNG") and "Heat map" in found["og:image:alt"]


def test_a_page_without_a_figure_shows_the_cover_s(published, tmp_path):
    context = {"title": "Notation", "body": "<h1>Notation</h1><p>" + "word " * 80 + "</p>", "metatags": ""}
    published.describe(app(tmp_path), "book/notation", "", context, object())
    found = tags(context)
    assert found["og:image"].endswith("/latest/_static/phase.png") and (ROOT / "book/_static/phase.png").is_file()
    assert len(found["og:description"]) <= 202 and found["og:description"].endswith("word …")


def test_the_map_for_search_engines_has_every_page(published, tmp_path, pages):
    published.list_pages(app(tmp_path), None)
    found = re.findall("<loc>(.*?)</loc>", (tmp_path / "sitemap.xml").read_text())
    there = {f"https://owner.github.io/name/latest/{page.name}.html" for page in pages if page.source.exists()}
    assert set(found) == there and len(found) == len(there) > 80


def test_a_book_for_its_reader_alone_has_none_of_it(published, monkeypatch):
    connected = []
    sphinx = SimpleNamespace(connect=lambda event, *_, **__: connected.append(event))
    published.setup(sphinx)
    assert len(connected) == 4
    monkeypatch.delenv("FLBOOK_VERSION")
    connected.clear()
    published.setup(sphinx)
    assert connected == []


def test_every_address_within_the_built_is_there(built, pages):
    """Links to files and pages; a book that is not published offers no PDF that it does not have."""
    lost = set()
    for page in pages:
        html = (built / f"{page.name}.html").read_text()
        addresses = re.findall(r'<a [^>]*href="([^"#?]+)', html)
        inside = {address for address in addresses if not re.match(r"[a-z]+:|//", address)}
        lost |= {(page.name, one) for one in inside if not ((built / page.name).parent / unquote(one)).exists()}
    assert not lost


def test_conf_py_is_what_the_settings_give():
    """Where Jupyter Book is installed, `make sphinx` compares it whole; here what both say in so many words."""
    said = yaml.safe_load((ROOT / "_config.yml").read_text())
    settings: dict = {"__file__": str(ROOT / "conf.py")}
    before = list(sys.path)
    exec((ROOT / "conf.py").read_text(), settings)  # noqa: S102
    sys.path[:] = before
    for key, value in said["sphinx"]["config"].items():
        assert settings[key] == value, f"{key}: run `make conf`"
    assert set(said["sphinx"]["local_extensions"]) <= set(settings["extensions"])
    assert set(said["exclude_patterns"]) <= set(settings["exclude_patterns"])
    assert not {"jupyter_book", "sphinx_thebe"} & set(settings["extensions"])
    assert settings["html_theme_options"]["repository_url"] == said["repository"]["url"]
