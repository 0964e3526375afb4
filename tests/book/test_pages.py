"""What a page of the book consists of, counted: words, machinery, claims, proofs (its pixels: test_browser.py).

The limits are those of CONTRIBUTING, "Add a lecture". Pages that do not keep them yet stand in todo.toml with what they
have; there a page may only get better, and what keeps the limit is taken off the list.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import scratch
from limits import IN_BROWSER, TODO, within

from flbook.book import facts, kinds

OPEN = re.compile(r"^## (?:Checks|Exercises)\b", re.M)  # where the main line of a page ends
BOX = re.compile(r"^(:{3,})\{prf:(\w+)\}([^\n]*)\n(.*?)^\1\s*$", re.S | re.M)


def main_line(page) -> list[dict]:
    """The cells before the sections that are closed or are work for the reader."""
    for number, cell in enumerate(page.cells):
        if cell["cell_type"] == "markdown" and OPEN.search(cell["source"]):
            return page.cells[:number]
    return page.cells


def claims(page) -> int:
    """Claims that are checked on the main line."""
    code = "\n".join(cell["source"] for cell in main_line(page) if cell["cell_type"] == "code")
    return len(re.findall(r"\bclaims\.(?:check|identity)\(", code))


def other_events(page) -> int:
    """Words about where the material was shown; a lecture speaks to who has never been there."""
    return len(re.findall(r"\b(?:slides?|tutorials?|talks?)\b", page.text, re.I))


def unsourced(page) -> int:
    """Theorem boxes without a statement in formulas, or with neither a source nor a proof on the page."""
    boxes = BOX.findall(page.text)
    proofs = sum(kind == "proof" for _, kind, _, _ in boxes)
    stated = [body for _, kind, _, body in boxes if kind in ("theorem", "proposition", "lemma", "corollary")]
    return sum("$" not in body for body in stated) + max(0, sum("{cite" not in body for body in stated) - proofs)


def typed_numbers(page) -> int:
    """Numbers of this book's own theorems, figures and exercises that were typed; a paper's come with its citation."""
    found = re.finditer(r"\b(?:Theorem|Proposition|Lemma|Definition|Exercise|Figure)s? \d+\b(?![.]\d)", page.text)
    return sum("{cite" not in page.text[max(0, match.start() - 120) : match.end() + 60] for match in found)


def proofs(page) -> int:
    return -sum(kind == "proof" for _, kind, _, _ in BOX.findall(page.text))


@dataclass(frozen=True)
class Count:
    """A number that a page may have at most."""

    of: Callable
    limit: float


COUNTS = {
    "words": Count(lambda page: facts.words(page.cells), 1800),
    "machinery": Count(lambda page: round(1 - kinds.share([page.cells]), 2), 0.30),
    "claims": Count(claims, 4),
    "other_events": Count(other_events, 0),
    "unsourced": Count(unsourced, 0),
    "typed_numbers": Count(typed_numbers, 0),
    "proofs": Count(proofs, -1),  # one at least
}


@pytest.mark.parametrize("count", COUNTS)
def test_it_is_a_page_that_one_reads(lecture, count):
    within(lecture.name.removeprefix("book/"), count, COUNTS[count].of(lecture), COUNTS[count].limit)


def test_the_list_names_pages_and_counts(lectures):
    names = {page.name.removeprefix("book/") for page in lectures}
    assert set(TODO) <= {*names, "all lectures"}
    assert {count for counts in TODO.values() for count in counts} <= {*COUNTS, *IN_BROWSER, "seconds"}


# Pages in the second form: their model is drawn, and trained in one cell without the library.
SECOND_FORM = {
    "benign_overfitting/two_borders",
    "training_strategies/rules_on_pictures",
    "benign_overfitting/double_descent",
    "benign_overfitting/graph_convolution",
    "benign_overfitting/output_layers",
    "benign_overfitting/leaky_relu",
    "benign_overfitting/label_noise_stages",
    "benign_overfitting/relu_heatmap",
    "benign_overfitting/relu_power_phase",
    "benign_overfitting/token_selection",
    "benign_overfitting/vision_transformer",
    "benign_overfitting/xor",
    "in_context_learning/attention_landscape",
    "in_context_learning/mean_field_features",
    "in_context_learning/bayes_gap",
    "in_context_learning/chain_of_thought",
    "in_context_learning/concept_prompts",
    "in_context_learning/induction",
    "in_context_learning/linear_attention",
    "in_context_learning/low_dimensional_targets",
    "in_context_learning/nonparametric_rates",
    "in_context_learning/mamba_features",
    "in_context_learning/mamba_regression",
    "in_context_learning/delta_rules",
    "in_context_learning/learning_with_representations",
    "in_context_learning/mean_field_langevin",
    "in_context_learning/perturbed_flow",
    "in_context_learning/task_diversity",
    "in_context_learning/test_time_training",
    "in_context_learning/vector_arithmetic",
    "in_context_learning/what_is_icl",
    "foundation_models/contrastive",
    "foundation_models/contrastive_digits",
    "foundation_models/linear_attention_dimension",
    "foundation_models/denoising_from_scratch",
    "foundation_models/diffusion",
    "foundation_models/distilled_attention",
    "foundation_models/two_clocks",
    "representation/committee",
    "representation/features_in_real_networks",
    "representation/grokking",
    "representation/information_exponent",
    "representation/lazy_and_mean_field",
    "representation/kernels_and_one_step",
    "representation/loss_path_kernel",
    "representation/maximal_update",
    "representation/online_sgd",
    "representation/rate_transfer",
    "signal_noise/decomposition",
    "signal_noise/signal_noise_model",
    "training_strategies/adam_and_gradient_descent",
    "training_strategies/cutmix",
    "training_strategies/expert_clusters",
    "training_strategies/federated_learning",
    "training_strategies/label_noise_gd",
    "training_strategies/large_steps",
    "training_strategies/mixture_of_experts",
    "training_strategies/mixup",
    "training_strategies/momentum",
    "training_strategies/out_of_distribution",
    "training_strategies/saddles_and_edge",
    "training_strategies/sharpness_aware",
    "training_strategies/sign_descent",
    "training_strategies/spectral_steps",
}


@pytest.mark.parametrize("name", sorted(SECOND_FORM))
def test_the_model_is_drawn_and_trained_from_scratch(lectures, name):
    (page,) = (page for page in lectures if page.name == f"book/{name}")
    about = [output.get("metadata", {}).get("flbook", {}) for output in page.outputs]
    assert any("schematic" in of for of in about), "a drawing of the model, by plots.Schematic"
    names = scratch.imported(page.cells)
    cells = [source for source in kinds.visible(page.cells) if scratch.from_scratch(source, names)]
    loop = re.compile(r"^ *for .+ in .+:(?: *#.*)?$", re.M)
    assert any(20 <= kinds.lines(source) <= 40 and loop.search(source) for source in cells), "a cell that trains it"
    assert page.symbols, "a table of its symbols"
