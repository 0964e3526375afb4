"""An ensemble is its members: every network, every law of data, drawn anew for every seed and every step."""

import inspect

import pytest
import torch
from torch import nn
from whole_library import classes

from flbook.data import LinearPrompts, SignalNoise, SingleIndex, TaskPool
from flbook.data.crops import TwoClassPictures
from flbook.data.images import ImageNoise, digits
from flbook.data.ten_digits import ten_digits
from flbook.domains import Checked
from flbook.lectures.benign_overfitting.label_noise_stages.flipped_images import FlippedImages
from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture
from flbook.lectures.benign_overfitting.output_layers.trainable import TrainableCNN
from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection.token_attention import TokenAttention
from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignals
from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.contrastive_digits.coloured_classes import ColouredClasses
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_networks import PictureDenoiser, PointDenoiser
from flbook.lectures.foundation_models.denoising_from_scratch.point_mixture import PointMixture
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser
from flbook.lectures.foundation_models.distilled_attention.pixel_sequences import PixelSequences
from flbook.lectures.in_context_learning.bayes_gap.task_mixture import PlanePrompts, SignPrompts
from flbook.lectures.in_context_learning.bayes_gap.uniform_attention import UniformAttention
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ParityTree
from flbook.lectures.in_context_learning.chain_of_thought.trained_decoder import ChainDecoder
from flbook.lectures.in_context_learning.concept_prompts.concept_attention import ConceptAttention
from flbook.lectures.in_context_learning.concept_prompts.concepts import ConceptPrompts
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts
from flbook.lectures.in_context_learning.induction.word_transformer import WordTransformer
from flbook.lectures.in_context_learning.learning_with_representations.attention_on_features import AttentionOnFeatures
from flbook.lectures.in_context_learning.learning_with_representations.feature_map import FeatureMapPrompts
from flbook.lectures.in_context_learning.mean_field_langevin.parity import SparseParity
from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import FunctionPrompts, fourier_line
from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts
from flbook.lectures.in_context_learning.shared.mamba import Mamba
from flbook.lectures.in_context_learning.shared.prompt_pool import PromptPool
from flbook.lectures.in_context_learning.shared.single_index_prompts import SingleIndexPrompts
from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall
from flbook.lectures.in_context_learning.what_is_icl.shifted_prompts import SHIFTS, ShiftedPrompts
from flbook.lectures.in_context_learning.what_is_icl.training_laws import TwoScales
from flbook.lectures.representation.grokking.modular_table import ModularTable
from flbook.lectures.representation.lazy_and_mean_field.teacher import Teacher
from flbook.lectures.training_strategies.expert_clusters.index_clusters import IndexClusters
from flbook.lectures.training_strategies.mixture_of_experts.clustered import ExpertClusters
from flbook.lectures.training_strategies.shared.common_and_rare import CommonAndRare
from flbook.lectures.training_strategies.shared.environments import Environments
from flbook.lectures.training_strategies.shared.margins import Margins
from flbook.lectures.training_strategies.shared.rare_features import RareFeatures
from flbook.lectures.training_strategies.shared.sparse_noise import SparseNoise
from flbook.lectures.training_strategies.shared.strong_weak import StrongWeak
from flbook.lectures.training_strategies.sign_descent.bigrams import Bigrams
from flbook.lectures.training_strategies.sign_descent.two_tokens import TwoTokens
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts
from flbook.models import TwoLayer
from flbook.models.patch_attention import VisionTransformer
from flbook.shapes import Context

SEEDS = (3, 1)
SLANTED = ((2.0, 0.6), (0.6, 0.5))
RECALL = FactualRecall(concepts=4, common=3, d=12, noise=0.1)
SAMPLES = [
    *(SignalNoise(n=6, d=4, flip_prob=0.3, orthogonal=orthogonal, exact_flips=exact)
      for orthogonal in (False, True) for exact in (False, True)),
    SingleIndex(n=4, d=3), Teacher(n=5, d=3, k=2), TokenSelection(n=6, d=8, tokens=5), ImageNoise(digits(), n=6),
    FlippedImages(digits(), n=6), Mixture(n=8, d=12), TwoSignals(n=6, d=8, tokens=4), XorSignalNoise(n=8, d=10),
    SparseParity(n=9, d=7, k=3), ColouredClasses(n=1780), SparseNoise(n=6, d=12, s=3),
    ExpertClusters(n=6, d=12, clusters=2), TwoTokens(n=6, d=12, s=3),
    TwoModalities(n=6, d=8), TwoClassPictures(n=6, held_out=4, fresh=6),
    TwoClassPictures("digits", n=6, held_out=4, fresh=6),
]
DRAWN = [  # laws whose tests draw fresh noise by themselves, or take it from its exact law
    Margins(n=6, d=8, share=0.5), StrongWeak(n=4, d=8, noise=0.2), RareFeatures(n=40, d=16),
    CommonAndRare(n=20, d=16, share=0.2), Environments(n=160, d=4), Bigrams(words=8, successors=3),
    Facts(count=12, d=4),
]
PROMPTS = [
    LinearPrompts(n=4, d=2, noise=1.0, covariance=SLANTED), LinearPrompts(4, 2, pool=TaskPool(3)),
    SingleIndexPrompts(n=3, d=4, r=2, spread=(0.0, 0.0, 0.5), noise=0.3), ConceptPrompts(concepts=3, n=3, d=8),
    FunctionPrompts(fourier_line(3), (1.0, 0.5, 0.5), n=6, noise=0.3), DriftingPrompts(n=4, d=2, noise=0.5),
    SignPrompts(4, 1.5), SignPrompts(3, 1.0, (-2.0, 0.0, 2.0), (0.25, 0.5, 0.25)), PlanePrompts(4, 0.8),
    *(ShiftedPrompts(2, 4, shift) for shift in SHIFTS), TwoScales(3, 2), PointMixture.two_modes(),
    FeatureMapPrompts(3, 4), FeatureMapPrompts(3, 2, given="features"),
]
DRAWS = [  # of seeds and a step
    *(data.draw for data in PROMPTS), lambda batch, seed, step=0: RECALL.questions(batch, seed, step),
    lambda batch, seed, step=0: RECALL.in_context(batch, 3, seed, step), PixelSequences().draw,
]


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


CONTEXT = Context(normal(2, 5, 6, 3), normal(2, 5, 6)), normal(2, 5, 1, 3)
WORDS = Context(normal(2, 5, 6, 3), normal(2, 5, 6, 3)), CONTEXT[1]
NETWORKS = [  # a network of given seeds, and what two members of it are asked
    (lambda seed: TrainableCNN(7, 3, 0.2, v_0=0.1, seed=seed), normal(2, 5, 2, 7)),
    (lambda seed: TwoLayer(3, 8, seed=seed, dtype=torch.float32), normal(2, 5, 3)),
    (lambda seed: TokenAttention(torch.ones(7), False, seed), normal(2, 5, 4, 7)),
    (lambda seed: TokenAttention(torch.ones(7), True, seed), normal(2, 5, 4, 7)),
    (lambda seed: VisionTransformer(7, 3, 0.5, 0.5, seed), normal(2, 5, 4, 7)),
    (lambda seed: TiedDenoiser(7, 3, 0.5, seed=seed), normal(2, 5, 2, 7)),
    (lambda seed: UniformAttention(3, seed=seed), *CONTEXT),
    (lambda seed: AttentionOnFeatures(3, 5, seed).float(), *CONTEXT),
    (lambda seed: ConceptAttention(3, 6, spread=0.5, seed=seed), *WORDS),
    (lambda seed: Mamba(3, 5, 6, seed, torch.float32), *CONTEXT),
    (lambda seed: PointDenoiser(3, 8, seed), normal(2, 5, 3), torch.arange(10).reshape(2, 5)),
    (lambda seed: PictureDenoiser(3, seed), normal(2, 5, 1, 8, 8), torch.arange(10).reshape(2, 5)),
    (lambda seed: ChainDecoder(6, 8, 1, 2, seed=seed), normal(2, 5, 6).sign()),
    (lambda seed: WordTransformer(9, 6, 8, heads=2, smeared=True, seed=seed), torch.arange(60).reshape(2, 5, 6) % 9),
]


def parts(drawn) -> list[torch.Tensor]:
    """All tensors of a sample or a prompt."""
    if torch.is_tensor(drawn):
        return [drawn]
    return [part for one in drawn if one is not None for part in parts(one)]


def check_members(draw) -> None:
    """What two seeds draw together is what each draws alone; some parts, such as a signal, belong to both."""
    together = parts(draw(SEEDS))
    for member, seed in enumerate(SEEDS):
        for whole, one in zip(together, parts(draw(seed)), strict=True):
            torch.testing.assert_close(whole[member] if whole.ndim > one.ndim else whole, one, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("data", SAMPLES, ids=lambda data: type(data).__name__)
def test_samples(data):
    check_members(data.draw)
    points = (9,) if "points" in inspect.signature(data.draw_test).parameters else ()
    check_members(lambda seed: data.draw_test(*points, seed=seed))
    assert not torch.equal(data.draw(SEEDS).x[0], data.draw(SEEDS).x[1])


@pytest.mark.parametrize("data", DRAWN, ids=lambda data: type(data).__name__)
def test_training_samples(data):
    check_members(data.draw)
    assert any(not torch.equal(*map(torch.as_tensor, pair)) for pair in zip(parts(data.draw(3)), parts(data.draw(1)),
                                                                           strict=True))


def test_samples_of_clusters():
    check_members(lambda seed: IndexClusters(d=10).draw(7, seed))


@pytest.mark.parametrize("tree", [None, 1])
def test_contexts_with_a_parent(tree):
    check_members(lambda seed: CausalContexts(tokens=3, length=5, tree=tree).draw(7, seed))


def test_chains_of_a_parity():
    check_members(lambda seed: ParityTree(d=6, k=4, flip=0.1).draw(5, seed))


@pytest.mark.parametrize("split", ["random", "equal a-b", "equal a+b", "uneven a-b"])
def test_tables_modulo_a_prime(split):
    check_members(ModularTable(p=5, share=0.6, split=split).draw)


def test_samples_of_ten_digits():
    check_members(lambda seed: ten_digits(50, seed))


@pytest.mark.parametrize("draw", DRAWS, ids=[repr(data)[:60] for data in PROMPTS] + ["questions", "in context",
                                                                                                  "pixels"])
def test_a_batch_of_prompts_is_a_function_of_seed_and_step(draw):
    check_members(lambda seed: draw(5, seed, step=2))
    first = parts(draw(5, 1, step=2))
    draw(7, 2, step=9)  # what was drawn in between does not matter
    for part, same in zip(first, parts(draw(5, 1, step=2)), strict=True):
        assert torch.equal(part, same)
    for other in (draw(5, 1, step=3), draw(5, 2, step=2)):
        assert any(not torch.equal(part, else_) for part, else_ in zip(first, parts(other), strict=True))


def test_every_law_has_a_case():
    laws = {kind for kind in classes(Checked) if inspect.isfunction(vars(kind).get("draw"))}
    elsewhere = {PromptPool, PixelSequences,
                 *(kind for kind in laws if kind.__name__ in ("RedrawnLabels", "Laws", "CutMix"))}
    alone = {CausalContexts, IndexClusters, ModularTable, ParityTree}
    missing = laws - elsewhere - alone - {type(data) for data in (*SAMPLES, *DRAWN, *PROMPTS)}
    assert not missing, f"give {', '.join(kind.__name__ for kind in missing)} a case in tests/test_ensembles.py"


@pytest.mark.parametrize("make, asked", [(make, asked) for make, *asked in NETWORKS],
                         ids=[type(make(0)).__name__ for make, *_ in NETWORKS])
def test_networks(make, asked):
    whole, members = make(SEEDS), [make(seed) for seed in SEEDS]
    for member, one in enumerate(members):
        for (name, both), own in zip(whole.named_parameters(), one.parameters(), strict=True):
            assert torch.equal(both[member], own), name
    with torch.no_grad():  # away from a start at which some parts may be zero
        for parameter in whole.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    for member, one in enumerate(members):
        nn.utils.vector_to_parameters(torch.cat([p[member].flatten() for p in whole.parameters()]), one.parameters())
        own = [type(part)(*(inner[member] for inner in part)) if isinstance(part, Context) else part[member]
               for part in asked]
        torch.testing.assert_close(whole(*asked)[member], one(*own))
