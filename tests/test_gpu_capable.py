"""GPU-capable, shown without a GPU: a step of everything that trains, on PyTorch's meta device.

There a value read back to the host raises. What torch mixes without a word, a matrix product of the CPU with the meta
device, raises here, since every operation's arguments are looked at; and all results must be on the device.
"""

import copy
import inspect
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from whole_library import classes

from flbook.data import SignalNoise
from flbook.data.prompts import LinearPrompts, Prompts, map_tensors
from flbook.dynamics import Gram, GramTraining
from flbook.dynamics.patches import PatchTraining
from flbook.dynamics.weights import WeightTraining
from flbook.lectures.benign_overfitting.graph_convolution import graph_training, graphs
from flbook.lectures.benign_overfitting.label_noise_stages.orthogonal_noise import OrthogonalNoise
from flbook.lectures.benign_overfitting.leaky_relu.mixture import Mixture
from flbook.lectures.benign_overfitting.leaky_relu.single_patch import SinglePatchTraining
from flbook.lectures.benign_overfitting.output_layers.both_layers import TwoLayerTraining
from flbook.lectures.benign_overfitting.output_layers.trainable import TrainableCNN
from flbook.lectures.benign_overfitting.shared.pooled_tokens import PooledTraining
from flbook.lectures.benign_overfitting.shared.token_gram import TokenTraining
from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection
from flbook.lectures.benign_overfitting.token_selection.token_attention import TokenAttention
from flbook.lectures.benign_overfitting.vision_transformer.chosen_tokens import ChosenTokens
from flbook.lectures.benign_overfitting.vision_transformer.token_filters import FilterTraining
from flbook.lectures.benign_overfitting.vision_transformer.token_span import SpanTraining, TokenSpan
from flbook.lectures.benign_overfitting.vision_transformer.two_signals import TwoSignals
from flbook.lectures.benign_overfitting.xor.clusters import XorSignalNoise
from flbook.lectures.benign_overfitting.xor.xor_gram import XorGramTraining
from flbook.lectures.foundation_models import contrastive_digits
from flbook.lectures.foundation_models.contrastive.paired_training import TWO_MODALITIES, drawn_pairs
from flbook.lectures.foundation_models.contrastive.patch_encoder import PatchEncoder
from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities
from flbook.lectures.foundation_models.contrastive_digits.pretraining import DigitPretraining
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_networks import PictureDenoiser, PointDenoiser
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_problem import NoisePrediction
from flbook.lectures.foundation_models.denoising_from_scratch.noise_schedule import NoiseSchedule
from flbook.lectures.foundation_models.denoising_from_scratch.point_mixture import PointMixture
from flbook.lectures.foundation_models.diffusion.denoising import DenoisingTraining
from flbook.lectures.foundation_models.diffusion.tied_denoiser import TiedDenoiser
from flbook.lectures.foundation_models.distilled_attention.pixel_transformer import PixelTransformer
from flbook.lectures.foundation_models.distilled_attention.random_feature_attention import RandomFeatureAttention
from flbook.lectures.in_context_learning.bayes_gap.uniform_attention import UniformAttention
from flbook.lectures.in_context_learning.chain_of_thought.parity_trees import ChainTraining, ParityTree
from flbook.lectures.in_context_learning.chain_of_thought.trained_decoder import ChainDecoder
from flbook.lectures.in_context_learning.concept_prompts import concept_dynamics as concepts
from flbook.lectures.in_context_learning.concept_prompts.concept_attention import ConceptAttention, PromptAverages
from flbook.lectures.in_context_learning.concept_prompts.concepts import ConceptPrompts
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts
from flbook.lectures.in_context_learning.induction.parent_gradient import ParentTraining
from flbook.lectures.in_context_learning.induction.word_transformer import WordTransformer
from flbook.lectures.in_context_learning.learning_with_representations.attention_on_features import AttentionOnFeatures
from flbook.lectures.in_context_learning.mamba_features.mamba_block import MambaBlock
from flbook.lectures.in_context_learning.mamba_regression.recursion import MambaTraining
from flbook.lectures.in_context_learning.mean_field_langevin.neurons import Neurons, tanh_unit
from flbook.lectures.in_context_learning.nonparametric_rates import learned_basis
from flbook.lectures.in_context_learning.nonparametric_rates.learned_basis import CubeFeatures, FeatureAttention
from flbook.lectures.in_context_learning.shared.attention import LinearAttention, LinearTransformer
from flbook.lectures.in_context_learning.shared.mamba import Mamba, SelectiveLayer
from flbook.lectures.in_context_learning.shared.moments import MomentTraining
from flbook.lectures.in_context_learning.vector_arithmetic.factual_recall import FactualRecall
from flbook.lectures.in_context_learning.vector_arithmetic.recall import RecallPretraining
from flbook.lectures.in_context_learning.vector_arithmetic.task_attention import LinearRecall, TaskVectorAttention
from flbook.lectures.training_strategies import cutmix
from flbook.lectures.training_strategies.adam_and_gradient_descent.sparse_training import (
    LazySparseTraining,
    SparseTraining,
)
from flbook.lectures.training_strategies.cutmix.pasting import CutMix
from flbook.lectures.training_strategies.federated_learning import clients
from flbook.lectures.training_strategies.large_steps.weak_feature import StrongWeakTraining
from flbook.lectures.training_strategies.mixture_of_experts.experts import Experts
from flbook.lectures.training_strategies.mixture_of_experts.recipe import ExpertTraining
from flbook.lectures.training_strategies.mixup.mixed_pairs import MixedPairs, StoppedEarly
from flbook.lectures.training_strategies.rules_on_pictures.mixing import MixedBatches, soft_logistic
from flbook.lectures.training_strategies.saddles_and_edge.linear_network import LinearNetworkTraining, random_layers
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.lectures.training_strategies.shared.strong_weak import StrongWeak
from flbook.lectures.training_strategies.sign_descent.bigrams import Bigrams, BigramTraining
from flbook.lectures.training_strategies.sign_descent.two_tokens import TwoTokenTransformer
from flbook.lectures.training_strategies.spectral_steps.stored_facts import Facts, FactTraining
from flbook.models import TwoLayerCNN
from flbook.models.activations import Power
from flbook.models.convnet import ConvNet
from flbook.models.layers import MLP, Linear
from flbook.models.patch_attention import VisionTransformer
from flbook.models.transformer import GPT, Block, Norm, PromptTransformer
from flbook.models.two_layer import TwoLayer
from flbook.rivals import FrozenCNN
from flbook.shapes import Context
from flbook.training import losses, optimizers
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.network import ScaledTraining, Training
from flbook.training.problem import EmpiricalProblem, PopulationProblem, Problem, WrappedProblem
from flbook.training.prompted import PromptTraining

META = torch.device("meta")
N, D, M, L = 6, 8, 2, 4
DATA = SignalNoise(n=N, d=D)
SAMPLE = DATA.draw((0, 1))
CONTEXT = Context(torch.randn(4, N, D), torch.randn(4, N)), torch.randn(4, 1, D)
PAIRS = torch.randn(5, L, D), torch.randn(5, D), torch.randn(4, D)


def cnn(**options) -> TwoLayerCNN:
    return TwoLayerCNN(D, M, 0.1, seed=(0, 1), **options)


def gram(**options) -> GramTraining:
    return GramTraining.of(DATA, SAMPLE, cnn(**options))


def patches() -> PatchTraining:
    vectors, mix = torch.eye(D)[: N + 1], torch.randn(N, 2, N + 1)
    return PatchTraining.of(vectors, mix, SAMPLE.observed[0], cnn())


def denoising() -> DenoisingTraining:
    return DenoisingTraining.of(torch.randn(4, D), torch.rand(4), TiedDenoiser(D, M, 0.5), 0.8, 0.6)


def mixed() -> MixedPairs:
    return MixedPairs.of_samples(replace(patches(), activation=Power(2)), 0.6)
def pasted() -> cutmix.PastedTraining:
    return cutmix.problem(cutmix.Setting(seed=(0, 1), n=40, d=D, m=M), CutMix())


def mixed_batches() -> MixedBatches:
    pictures, labels = torch.randn(N, 1, 8, 8), torch.ones(N)
    whole = Training(ConvNet((1, 8, 8), (2, 2), classes=1), pictures, labels, soft_logistic)
    return MixedBatches(whole, 2, mix="mixup")


def graph() -> graph_training.GraphTraining:
    block = graphs.TwoBlockGraph(N, 3.0, 2.0)
    sample, _ = graphs.on_graph(DATA, block, (0, 1))
    matrix = block.convolution(sample.y[0], (0, 1)).float()
    parts = graph_training.convolved(Gram.of(sample, cnn().w.detach().flatten(-3, -2)), matrix)
    y = sample.y.float()
    return graph_training.GraphTraining(parts, y, y, 1 / M, law=DATA.test_law, nodes=block.neighbourhoods(16),
                                        share=torch.einsum("...ik,...k->...i", matrix, y))


def single_patch() -> SinglePatchTraining:
    data = Mixture(n=N, d=D, gamma=0.3, flip_prob=0.25)
    return SinglePatchTraining.of(data, data.draw((0, 1)), TwoLayerCNN(D, M, 0.1, seed=(0, 1), dtype=torch.float64))


def tokens(keys: bool = True) -> TokenTraining:
    data = TokenSelection(n=N, d=D, tokens=L)
    model = TokenAttention(data.head, keys, dtype=torch.float64)
    return TokenTraining.of(data, data.draw(0), model.w)


def span() -> SpanTraining:
    data = TwoSignals(n=N, d=D, tokens=L)
    return SpanTraining.of(data, data.draw(0), VisionTransformer(D, M, dtype=torch.float64))


def filters() -> FilterTraining:
    part = span()
    return FilterTraining(part.gram[..., :-1, :-1], part.observed, part.y, L, part.sigma_xi)


def xor() -> XorGramTraining:
    sample = XorSignalNoise(n=8, d=D).draw((0, 1))
    return XorGramTraining.of(sample, cnn(dtype=torch.float64))


def concept(kind: type) -> Problem:
    data = ConceptPrompts(concepts=2, n=4, d=6)
    layer = ConceptAttention(data.d, 4)
    return kind.of(layer, data) if kind is concepts.ReducedConcepts else kind(layer, data, batch=3)


def digit_pairs(partner: str) -> DigitPretraining:
    return contrastive_digits.experiment.setting("tiny").problem(partner)


def mamba() -> MambaTraining:
    drawn = LinearPrompts(n=N, d=3).draw(5, 0)
    return MambaTraining.on(Mamba(3, 4, N), drawn.context, drawn.query, drawn.target)


NETWORKS = {  # a network and what it is asked
    TwoLayerCNN: lambda: (cnn(bias=True), SAMPLE.x.float()),
    TrainableCNN: lambda: (TrainableCNN(D, M), SAMPLE.x.float()),
    FrozenCNN: lambda: (FrozenCNN(cnn(bias=True), SAMPLE.x.float()), SAMPLE.x.float()),
    ConvNet: lambda: (ConvNet(), torch.randn(3, 1, 8, 8)),
    TwoLayer: lambda: (TwoLayer(D, 4, dtype=torch.float32), torch.randn(3, D)),
    TiedDenoiser: lambda: (TiedDenoiser(D, M, 0.5), torch.randn(3, 2, D)),
    MLP: lambda: (MLP((D, 4)), torch.randn(3, D)),
    PatchEncoder: lambda: (PatchEncoder(D, M, seed=(0, 1)), SAMPLE.x.float()),
    CubeFeatures: lambda: (CubeFeatures((D, 4)), torch.randn(3, D)),
    LinearAttention: lambda: (LinearAttention(torch.randn(D, D)), *CONTEXT),
    LinearTransformer: lambda: (LinearTransformer(D, 2), *CONTEXT),
    TokenAttention: lambda: (TokenAttention(torch.ones(D), True), torch.randn(3, L, D)),
    TwoTokenTransformer: lambda: (TwoTokenTransformer(D, M), torch.randn(3, 2, D)),
    VisionTransformer: lambda: (VisionTransformer(D, M), torch.randn(3, L, D)),
    UniformAttention: lambda: (UniformAttention(D), *CONTEXT),
    AttentionOnFeatures: lambda: (AttentionOnFeatures(D, M).float(), *CONTEXT),
    ConceptAttention: lambda: (ConceptAttention(D, 4), Context(torch.randn(4, N, D), torch.randn(4, N, D)),
                               CONTEXT[1]),
    PromptAverages: lambda: (PromptAverages(D), Context(torch.randn(4, N, D), torch.randn(4, N, D)), CONTEXT[1]),
    SelectiveLayer: lambda: (SelectiveLayer(D, 2, dtype=torch.float32), torch.randn(3, L, D)),
    Mamba: lambda: (Mamba(D, 2, N, dtype=torch.float32), *CONTEXT),
    MambaBlock: lambda: (MambaBlock(torch.randn(3, D + 2), SelectiveLayer(3, 2, dtype=torch.float32),
                                    torch.randn(3, D + 2), torch.zeros(3), torch.zeros(3)), *CONTEXT),
    Neurons: lambda: (Neurons(tanh_unit, torch.randn(5, D)), torch.randn(3, D)),
    FeatureAttention: lambda: (
        FeatureAttention(learned_basis.Setting(d=D, width=4, seed=(0,))), Context(*(part[None] for part in CONTEXT[0])),
        CONTEXT[1][None]),
    Linear: lambda: (Linear(torch.ones(D, 3)), torch.randn(2, L, D)),
    Norm: lambda: (Norm(torch.ones(D)), torch.randn(2, L, D)),
    Block: lambda: (Block(D, 2, 0.1, 0.1, 0, "a block"), torch.randn(2, L, D)),
    GPT: lambda: (GPT(D, 1, 2, L), torch.randn(2, L, D)),
    PromptTransformer: lambda: (PromptTransformer(D, N, 8, 1), *CONTEXT),
    PixelTransformer: lambda: (
        PixelTransformer(D, 1).attending([RandomFeatureAttention.draw(3, 2, D // 2)]), torch.zeros(2, 64).long()),
    RandomFeatureAttention: lambda: (RandomFeatureAttention.draw(3, 2, D), *(torch.randn(2, 2, L, D) for _ in "qkv")),
    TaskVectorAttention: lambda: (TaskVectorAttention(D), *PAIRS),
    LinearRecall: lambda: (LinearRecall(D, 4), *PAIRS),
    Experts: lambda: (Experts(D, 3, M), SAMPLE.x.float()),
    PointDenoiser: lambda: (PointDenoiser(D, 4), torch.randn(3, D), torch.ones(3)),
    PictureDenoiser: lambda: (PictureDenoiser(2), torch.randn(3, 1, 8, 8), torch.ones(3)),
    ChainDecoder: lambda: (ChainDecoder(L, 8, 1, 2), torch.ones(3, L)),
    WordTransformer: lambda: (WordTransformer(9, L, D, smeared=True, seed=0), torch.zeros(3, L).long()),
}
def given_prompts() -> Prompts:
    """Prompts of two steps."""
    return map_tensors(LinearPrompts(n=N, d=3).draw(5, 0), lambda t: torch.stack([t, t]))


PROBLEMS = {
    "Training": lambda: Training(cnn(), SAMPLE.x, SAMPLE.observed),
    "LazyTraining": lambda: Training(cnn(), SAMPLE.x, SAMPLE.observed).lazy(),
    "ScaledTraining": lambda: ScaledTraining(cnn(), SAMPLE.x, SAMPLE.observed, losses.squared, torch.ones(2)),
    "LazyScaledTraining": lambda: ScaledTraining(cnn(), SAMPLE.x, SAMPLE.observed, losses.squared, 2.0).lazy(),
    "ParentTraining": lambda: ParentTraining.of(CausalContexts(length=L).draw(5, (0, 1))),
    "ChainTraining": lambda: ChainTraining(ParityTree(6, 4).draw(5, (0, 1)).tokens, 6),
    "FactTraining": lambda: FactTraining.of(Facts(count=9, d=4), (0, 1)),
    "LinearNetworkTraining": lambda: LinearNetworkTraining(torch.eye(3).double(), random_layers(3, 4, 0.5, (0, 1))),
    "BigramTraining": lambda: BigramTraining.of(Bigrams(words=8, successors=3), (0, 1)),
    "ByHand": lambda: ByHand(cnn(), SAMPLE.x, SAMPLE.observed),
    "SparseTraining": lambda: SparseTraining(cnn(), SAMPLE.x, SAMPLE.observed),
    "LazySparseTraining": lambda: LazySparseTraining(cnn(), SAMPLE.x, SAMPLE.observed),
    "StrongWeakTraining": lambda: StrongWeakTraining(StrongWeak(), cnn(), SAMPLE.x, SAMPLE.observed),
    "WeightTraining": lambda: WeightTraining(DATA, SAMPLE, cnn()),
    "LazyWeightTraining": lambda: WeightTraining(DATA, SAMPLE, cnn()).lazy(),
    "GramTraining": lambda: gram(bias=True),
    "LazyGramTraining": lambda: gram(bias=True).lazy(),
    "FrozenGramTraining": lambda: gram().frozen(),
    "GraphTraining": graph,
    "LazyGraphTraining": lambda: graph().lazy(),
    "PatchTraining": patches,
    "DenoisingTraining": denoising,
    "LazyPatchTraining": lambda: patches().lazy(),
    "MixedBatches": mixed_batches,
    "MixedPairs": mixed,
    "PastedTraining": pasted,
    "LazyPastedTraining": lambda: pasted().lazy(),
    "TwoLayerTraining": lambda: TwoLayerTraining.of(DATA, SAMPLE, TrainableCNN(D, M, 0.1, 0.5, seed=(0, 1))),
    "SinglePatchTraining": single_patch,
    "LazySinglePatchTraining": lambda: single_patch().lazy(),
    "XorGramTraining": xor,
    "FrozenXorTraining": lambda: xor().frozen(),
    "TokenTraining": tokens,
    "PooledTraining": lambda: PooledTraining.of(tokens(False)),
    "SpanTraining": span,
    "FilterTraining": filters,
    "ContrastiveTraining": lambda: drawn_pairs(TwoModalities(n=4, d=20), M, 0.1, TWO_MODALITIES, 2, (0, 1)),
    "PromptTraining": lambda: PromptTraining(LinearAttention(torch.zeros(3, 3), N), given_prompts()),
    "MomentTraining": lambda: MomentTraining(LinearPrompts(n=N, d=3), 2, 4, (0, 1)),
    "OrthogonalNoise": lambda: OrthogonalNoise(torch.tensor([2.0, 3.0]), torch.tensor([0.1]), 4),
    "ConceptPretraining": lambda: concept(concepts.ConceptPretraining),
    "LazyConceptPretraining": lambda: concept(concepts.LazyConceptPretraining),
    "EveryPrompt": lambda: concept(concepts.EveryPrompt),
    "ReducedConcepts": lambda: concept(concepts.ReducedConcepts),
    "MambaTraining": mamba,
    "DigitPretraining": lambda: digit_pairs("recoloured views"),
    "DigitPretraining of captions": lambda: digit_pairs("captions"),
    "DigitPretraining of classes": lambda: digit_pairs("weighted classes"),
    "ExpertTraining": lambda: ExpertTraining(Experts(D, 3, M, seed=(0, 1)), SAMPLE.x, SAMPLE.observed, seed=(0, 1)),
    "NoisePrediction": lambda: NoisePrediction(PointDenoiser(width=4, seed=(0, 1)), PointMixture.two_modes(),
                                               NoiseSchedule(), (0, 1), batch=5),
    "RecallPretraining": lambda: RecallPretraining(TaskVectorAttention(9), FactualRecall(3, 3, 9), batch=4, examples=2),
}
RULES = {
    "GradientDescent": optimizers.GradientDescent(torch.tensor([0.1, 0.2])),
    "Momentum": optimizers.Momentum(0.1, nesterov=True),
    "BoundedDescent": optimizers.BoundedDescent(0.1),
    "SharpnessAware": optimizers.SharpnessAware(0.1, 0.1),
    "LabelNoise": optimizers.LabelNoise(0.1, 0.2, (0, 1)),
    "LabelSmoothing": optimizers.LabelSmoothing(0.1, 0.2),
    "SignDescent": optimizers.SignDescent(0.1, 0.5),
    "NormalisedDescent": optimizers.NormalisedDescent(0.1, 0.5),
    "SpectralDescent": optimizers.SpectralDescent(0.1, 0.5),
    "Then": optimizers.Then(optimizers.GradientDescent(0.1), 1, optimizers.Momentum(0.1, averaged=True)),
    "FederatedAveraging": clients.FederatedAveraging(optimizers.GradientDescent(0.1), 2, (0.3, 0.7)),
    "Adam": optimizers.Adam(0.1),
    "RMSProp": optimizers.RMSProp(0.1),
    "WeightDecay": optimizers.WeightDecay(optimizers.GradientDescent(0.1), torch.tensor([0.1, 0.2])),
}
LOSSES = {name: loss for name, loss in vars(losses).items() if hasattr(loss, "slope") and not isinstance(loss, type)}
# No problem of their own, or, for the tokens that are chosen without training, with a test of their own:
PARTS = (
    EmpiricalProblem, PopulationProblem, WrappedProblem, optimizers._Penalised, Batches, StoppedEarly, TokenSpan,
    ChosenTokens,
)  # fmt: skip


def moved(thing):
    """On the meta device: by its own `to`, or all its tensors."""
    if isinstance(thing, nn.Module):
        return copy.deepcopy(thing).to(META)
    if isinstance(thing, Tensor) or (hasattr(thing, "to") and not isinstance(thing, type)):
        return thing.to(META)
    if isinstance(thing, dict):
        return {name: moved(part) for name, part in thing.items()}
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*map(moved, thing))
    if isinstance(thing, tuple | list):
        return type(thing)(map(moved, thing))
    if isinstance(thing, Problem):
        there = copy.copy(thing)
        for name, part in vars(thing).items():
            object.__setattr__(there, name, "meta" if name == "device" else moved(part))
        return there
    return thing


def tensors(thing) -> Iterator[Tensor]:
    """All tensors in nested results."""
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, dict | tuple | list):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from tensors(part)


class NothingMixed(TorchDispatchMode):
    """Refuses operations on tensors of the CPU and of the meta device, except for copies from here to there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = list(tensors((args, kwargs or {})))
        if func is not torch.ops.aten.copy_.default and any(part.device == META for part in given):
            mixed = [tuple(part.shape) for part in given if part.device != META and part.ndim]
            assert not mixed, f"{func} met tensors of the CPU, of shapes {mixed}"
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def nothing_mixed():
    with NothingMixed():
        yield


def check_devices(*results) -> None:
    found = list(tensors(results))
    assert found and all(part.device == META for part in found), [part.device for part in found]


@pytest.mark.parametrize("base, cases", [(nn.Module, {kind.__name__ for kind in NETWORKS}), (Problem, set(PROBLEMS))])
def test_everything_has_a_case(base, cases):
    missing = {kind.__name__ for kind in classes(base) - set(PARTS)} - cases
    assert not missing, f"give {', '.join(sorted(missing))} a case in tests/test_gpu_capable.py"


def test_every_rule_has_a_case():
    rules = {name for name, kind in inspect.getmembers(optimizers, inspect.isclass)
             if kind.__module__ == optimizers.__name__ and hasattr(kind, "step")}
    missing = {vars(optimizers)[name].__name__ for name in rules if not name.startswith("_")} - set(RULES)
    assert not missing, f"give {', '.join(sorted(missing))} a case in tests/test_gpu_capable.py"


@pytest.mark.parametrize("kind", NETWORKS, ids=lambda kind: kind.__name__)
def test_a_network_answers(kind):
    model, *asked = NETWORKS[kind]()
    answer = moved(model)(*moved(asked))
    check_devices(answer)
    if answer.requires_grad:
        answer.sum().backward()
        check_devices([p.grad for p in moved(model).parameters() if p.grad is not None] or [answer])


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_takes_a_step(name):
    problem = moved(PROBLEMS[name]())
    rule, params = optimizers.Momentum(0.1), problem.start()
    check_devices(params)
    check_devices(rule.step(problem.at(0), params, rule.start(params)), problem.norm(params))
    if isinstance(problem, EmpiricalProblem | Training):
        batches = Batches(problem, 2)
        check_devices(rule.step(batches.at(0), params, rule.start(params)), batches.train_loss(params))


def test_tokens_are_chosen():
    part = span()
    problem = moved(ChosenTokens.on(part.gram[..., : part.span, : part.span], part.observed, part.y, L, part.sigma_xi))
    params = problem.chosen(2)
    check_devices(params, problem.outputs(params), problem.test(params, torch.randn(5, L - 1, 1, device=META)))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("problem", ["Training", "GramTraining", "WeightTraining"])
def test_a_rule_takes_a_step(name, problem):
    rule, problem = RULES[name], moved(PROBLEMS[problem]())
    if problem.coefficients and not rule.linear:
        with pytest.raises(ValueError, match="leaves the span"):
            fit(problem, rule, 1)
        return
    params = problem.start() if not rule.decays else problem.decaying(problem.start())
    params, state = rule.step(problem.at(0), params, rule.start(params))
    check_devices(params, rule.step(problem.at(1), params, state))


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_a_slope(name):
    loss, several = LOSSES[name], isinstance(LOSSES[name], losses.CrossEntropy)
    f, y = torch.randn(2, 5, 3, device=META) if several else torch.randn(2, 5, device=META), torch.ones(5, device=META)
    weighted = losses.Weighted(loss, torch.ones(5, device=META))
    check_devices(loss(f, y), loss.slope(f, y), weighted(f, y), *([] if several else [weighted.slope(f, y)]))


def test_a_tensor_made_on_the_way_is_seen():
    class Mixed(nn.Module):
        def forward(self, x):
            return x @ torch.ones(D, 1)

    with pytest.raises(AssertionError, match="met tensors of the CPU"):
        check_devices(Mixed()(torch.ones(3, D, device=META)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_in_coefficients_refuses_what_it_would_compute_wrongly(name):
    """Not of the device, but of the same list: rules that leave the span, decay without a multiplier, inputs."""
    problem, descent = PROBLEMS[name](), optimizers.GradientDescent(0.1)
    if problem.coefficients:
        batches = [Batches(problem, 2)] if isinstance(problem, EmpiricalProblem) else []
        for wrapped in (problem, *batches):
            for rule in (optimizers.SignDescent(0.1), optimizers.Adam(0.1), optimizers.RMSProp(0.1)):
                with pytest.raises(ValueError, match=f"^{type(rule).__name__} leaves the span of gradients, in which "
                                                     f"{type(problem).__name__} keeps the weights; train the"):
                    fit(wrapped, rule, 1)
        if not isinstance(problem, GramTraining | PatchTraining):
            with pytest.raises(ValueError, match="keeps the initial weights as they are, so it takes no weight decay"):
                fit(problem, optimizers.WeightDecay(descent, 0.1), 1)
    if not isinstance(getattr(problem, "problem", problem), Training):
        with pytest.raises(ValueError, match=f"^{type(problem).__name__} takes no x: it is trained on what it was"):
            problem.gradient(problem.start(), x=torch.ones(2))
