"""The search of the built book, from the file system: what comes first, where the words stand, and no error."""

import pytest
from headless import opened

LATER = {"phase diagram": "benign_overfitting/relu_heatmap"}  # by the glossary
FIRST = LATER | {
    "SAM": "training_strategies/sharpness_aware",
    "label noise": "training_strategies/label_noise_gd",
    "benign": "benign_overfitting/relu_heatmap",
    "XOR": "benign_overfitting/xor",
    "double descent": "benign_overfitting/double_descent",
    "edge of stability": "training_strategies/saddles_and_edge",
    "grokking": "representation/grokking",
    "chain of thought": "in_context_learning/chain_of_thought",
    "induction head": "in_context_learning/induction",
    "Muon": "training_strategies/spectral_steps",
    "Mamba": "in_context_learning/mamba_regression",
    "task vectors": "in_context_learning/vector_arithmetic",
    "online SGD": "representation/online_sgd",
    "mixup": "training_strategies/mixup",
    "lazy training": "representation/lazy_and_mean_field",
    "in-context learning": "in_context_learning/what_is_icl",
    "momentum": "training_strategies/momentum",
    "information exponent": "representation/information_exponent",
    "vision transformer": "benign_overfitting/vision_transformer",
    "federated": "training_strategies/federated_learning",
    "mixture of experts": "training_strategies/mixture_of_experts",
    "IRM": "training_strategies/out_of_distribution",
    "diffusion": "foundation_models/diffusion",
    "test-time training": "in_context_learning/test_time_training",
}
ODD = ["constructor", "__proto__", "hasOwnProperty", "(", "[a", "*", "<b>bold</b>", "the", "%", "\\", "\u00e9"]


@pytest.fixture(scope="module")
def tab(browser, built):
    with opened(browser, (built / "search.html").as_uri() + "?q=noise", viewport={"width": 1280, "height": 900}) as tab:
        yield tab


def ask(tab, words):
    """Type the words, as a reader does, and wait for the answer."""
    tab.locator("article input[name=q], .bd-search-container input[name=q]").first.fill(words)
    tab.keyboard.press("Enter")
    tab.wait_for_function("words => new URLSearchParams(location.search).get('q') === words", arg=words)
    tab.locator(".search-summary:not(:empty)").wait_for(timeout=10_000)
    return tab.locator(".search-summary").inner_text()


def test_each_of_these_finds_its_lecture_first(tab):
    found = {words: tab.evaluate("words => flbookSearch.find(words)[0]?.page", words) for words in FIRST}
    assert found == {words: f"book/{page}" for words, page in FIRST.items()}


def test_a_word_of_the_line_outranks_any_number_in_prose(tab):
    """Every lecture by its topic, which stands in the line under its title."""
    lines = tab.evaluate("flbookSearch.lines()")
    topics = {page: line.split(" \u00b7 ")[0] for page, line in lines.items() if " \u00b7 " in line}
    found = {page: tab.evaluate("words => flbookSearch.find(words)[0]?.page", topic) for page, topic in topics.items()}
    assert found == {page: page for page in topics} and len(topics) > 40
    assert not [line for line in lines.values() if "Read first" in line or "Level" in line]


def test_excerpts_show_the_words_without_a_server(tab):
    assert ask(tab, "memorised noise").endswith("the best first.")
    first = tab.locator("ul.search li").first
    first.locator("mark").first.wait_for(timeout=10_000)
    assert first.locator(".line").inner_text() and 100 < len(first.locator("p.context").inner_text()) < 400
    words = {mark.lower() for mark in first.locator("mark").all_inner_texts()}
    assert words & {"memorised", "memorise", "memorising"} or "noise" in words
    first.locator("a").click()
    tab.locator("article h1").wait_for(timeout=10_000)
    tab.go_back()
    assert tab.complaints == [] and tab.asked == []


def test_odd_words_raise_nothing(tab):
    for words in ODD:
        assert ask(tab, words)
    assert tab.complaints == [] and tab.asked == []


def test_no_formula_s_source_is_shown(tab, built):
    text = "".join(path.read_text() for path in (built / "_static/search").glob("*.js"))
    assert "\\\\(" not in text and len(text) > 1e5
    titles = tab.evaluate("flbookSearch.find('neuron first step needs samples').map(({title}) => title)")
    title = next(title for title in titles if "d^k" in title)
    assert "\\" not in title and "{" not in title
