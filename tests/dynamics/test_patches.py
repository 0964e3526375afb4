"""Any patches in coefficients: the same training as in weights, the same law of fresh noise, refusals."""

from functools import partial

import pytest
import torch

from flbook import rng
from flbook.data import SignalNoise
from flbook.dynamics import GramTraining
from flbook.dynamics.patches import LazyPatchTraining, PatchTraining
from flbook.models import TwoLayerCNN
from flbook.models.activations import ReLUPower, cube, softplus
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import GradientDescent, LabelNoise, Momentum, SharpnessAware, WeightDecay

SEEDS, N, D, FEATURES = (0, 1), 5, 20, 2


def both(activation=softplus, **options) -> tuple[Training, PatchTraining, torch.Tensor]:
    """Three patches a sample, all of them mixed out of two features and five noise patches, in weights and in c."""
    vectors = rng.normal((FEATURES + N, D), SEEDS, "vectors")
    mix = rng.normal((N, 3, FEATURES + N), SEEDS, "mix") * 0.4
    y = rng.normal((N,), SEEDS, "labels").sign()
    cnn = TwoLayerCNN(D, 3, 0.1, activation, seed=SEEDS, dtype=torch.float64)
    x = torch.einsum("enps,esd->enpd", mix, vectors)
    return Training(cnn, x, y), PatchTraining.of(vectors, mix, y, cnn, features=FEATURES, **options), vectors


def weights(direct: Training, params, vectors) -> torch.Tensor:
    kept = params["start"][:, None, None, None] if "start" in params else 1
    return kept * direct.start()["w"] + torch.einsum("eks,esd->ekd", params["c"], vectors).unflatten(1, (2, 3))


RULES = [GradientDescent(0.2), Momentum(0.1, 0.7, averaged=True), SharpnessAware(0.2, 0.3),
         LabelNoise(0.2, 0.3, seed=SEEDS), WeightDecay(GradientDescent(0.2), 0.1)]


@pytest.mark.parametrize("batched", [False, True], ids=["", "batches"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_coefficients_train_as_weights_do(rule, batched):
    direct, patches, vectors = both()
    in_batches = partial(Batches, size=2, seed=3) if batched else lambda problem: problem
    there = fit(in_batches(direct), rule, 30).params if not rule.decays else None
    here = fit(in_batches(patches), rule, 30).params
    if there is None:  # decay by hand: the gradient of the loss and of half the square
        there = {"w": direct.start()["w"]}
        problem = in_batches(direct)
        for step in range(30):
            there = {"w": there["w"] - 0.2 * (problem.at(step).gradient(there)["w"] + 0.1 * there["w"])}
    torch.testing.assert_close(weights(direct, here, vectors), there["w"], rtol=0, atol=1e-10)
    assert (there["w"] - direct.start()["w"]).abs().max() > 0.02, "there was something to compare"
    torch.testing.assert_close(patches.predict(here), direct.predict(there), rtol=0, atol=1e-10)
    torch.testing.assert_close(patches.train_loss(here), direct.train_loss(there), rtol=0, atol=1e-10)


@pytest.mark.parametrize("activation", [softplus, cube, ReLUPower(2)], ids=["softplus", "cube", "squared relu"])
def test_lengths_kernels_overlaps_and_rivals_are_those_of_the_weights(activation):
    direct, patches, vectors = both(activation)
    params = fit(patches, GradientDescent(0.1), 10).params
    there = {"w": weights(direct, params, vectors)}
    assert torch.allclose(patches.norm(patches.gradient(params)), direct.norm(direct.gradient(there)), rtol=1e-10)
    torch.testing.assert_close(patches.output_gradients(params), direct.output_gradients(there), rtol=1e-9, atol=1e-10)
    less = fit(patches, WeightDecay(GradientDescent(0.1), 0.1), 10).params  # some of the start is left
    torch.testing.assert_close(patches.norm(less), direct.norm({"w": weights(direct, less, vectors)}))
    seen = torch.einsum("ejrd,esd->ejrs", there["w"], vectors[:, :FEATURES]).flatten(1, 2)
    torch.testing.assert_close(patches.overlaps(params), seen, rtol=0, atol=1e-10)
    gram = torch.einsum("ejrd,eksd->ejrks", there["w"], there["w"]).reshape(2, 6, 6)
    torch.testing.assert_close(patches.weight_gram(params), gram, rtol=0, atol=1e-10)
    lazy, there = fit(patches.lazy(), GradientDescent(0.1), 20).params, fit(direct.lazy(), GradientDescent(0.1), 20)
    torch.testing.assert_close(weights(direct, lazy, vectors), there.params["w"], rtol=0, atol=1e-10)
    line = patches.linear()
    trained = [problem.predict(fit(problem, GradientDescent(0.1), 9).params) for problem in (line, line.lazy())]
    torch.testing.assert_close(*trained)


def test_one_network_alone_has_the_lengths_of_its_weights():
    """Without an axis of the ensemble, and with some of the start left."""
    vectors, mix = rng.normal((4, D), 0, "vectors"), rng.normal((3, 2, 4), 0, "mix")
    cnn = TwoLayerCNN(D, 3, 0.1, softplus, seed=0, dtype=torch.float64)
    patches = PatchTraining.of(vectors, mix, torch.tensor([1.0, -1.0, 1.0]).double(), cnn)
    params = fit(patches, WeightDecay(GradientDescent(0.1), 0.1), 5).params
    w = params["start"] * cnn.w.detach().flatten(0, -2) + params["c"] @ vectors
    assert params["start"] < 1 and patches.norm(params).shape == ()
    torch.testing.assert_close(patches.norm(params), w.norm())


def test_an_ensemble_of_labels_alone_trains_one_network_for_each():
    vectors, mix = rng.normal((4, D), 0, "vectors"), rng.normal((3, 2, 4), 0, "mix")
    labels = torch.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]]).double()
    cnn = TwoLayerCNN(D, 3, 0.1, softplus, seed=0, dtype=torch.float64)
    both_labels = PatchTraining.of(vectors, mix, labels, cnn)
    assert both_labels.start()["c"].shape == (2, 6, 4)
    found = fit(both_labels, GradientDescent(0.1), 5).params["c"]
    for k, y in enumerate(labels):
        one = fit(PatchTraining.of(vectors, mix, y, cnn), GradientDescent(0.1), 5).params["c"]
        torch.testing.assert_close(found[k], one)


@pytest.mark.parametrize("orthogonal", [False, True], ids=["", "orthogonal"])
@pytest.mark.parametrize("kind", ["network", "lazy"])
def test_fresh_noise_has_its_exact_law(kind, orthogonal):
    """Covariances of what the filters see, from the weights, and outputs against patches that are drawn."""
    direct, patches, vectors = both(softplus, sigma_xi=0.7, orthogonal=orthogonal)
    params = fit(patches, GradientDescent(0.3), 20).params
    there = {"w": weights(direct, params, vectors)}
    chosen, drawer = (patches, direct) if kind == "network" else (patches.lazy(), direct.lazy())
    points = 40_000
    ours = chosen.noise_outputs(chosen.fresh(params, rng.normal((points, chosen.test_directions), 0, "fresh")))
    xi = 0.7 * rng.normal((points, D), 1, "patches").expand(2, -1, -1)
    if orthogonal:
        q = torch.linalg.qr(vectors[:, :FEATURES].mT)[0]
        xi = xi - torch.einsum("enf,edf->end", torch.einsum("end,edf->enf", xi, q), q)
    drawn = drawer.predict(there, xi[:, :, None])
    for moment in (1, 2, 3):
        mine, other = (f.detach().pow(moment) for f in (ours, drawn))
        error = (mine.var(-1) / points + other.var(-1) / points).sqrt()
        assert ((mine.mean(-1) - other.mean(-1)).abs() < 4.5 * error).all(), moment
    strength = torch.tensor([[1.0, 0.0], [0.5, -2.0]], dtype=torch.float64)
    features = torch.einsum("sf,efd->esd", strength, vectors[:, :FEATURES])
    torch.testing.assert_close(chosen.feature_outputs(params, strength), drawer.predict(there, features[:, :, None]))


def test_one_signal_and_one_noise_patch_are_the_signal_noise_model():
    data = SignalNoise(n=6, d=30, mu_norm=2.0)
    sample, cnn = data.draw(SEEDS), TwoLayerCNN(30, 3, 0.1, seed=SEEDS, dtype=torch.float64)
    gram = GramTraining.of(data, sample, cnn)
    vectors = torch.cat([sample.mu.expand(2, 1, -1), sample.xi], 1)
    mix = torch.zeros(2, 6, 2, 7, dtype=torch.float64)
    mix[:, :, 0, 0] = sample.y
    mix[:, range(6), 1, range(1, 7)] = 1
    patches = PatchTraining.of(vectors, mix, sample.observed, cnn)
    here, there = (fit(problem, GradientDescent(0.3), 40).params for problem in (patches, gram))
    torch.testing.assert_close(here["c"], torch.cat([there["mu"][..., None], there["xi"]], -1), rtol=0, atol=1e-12)
    torch.testing.assert_close(patches.output_gradients(here), gram.output_gradients(there), rtol=1e-10, atol=1e-10)


def test_bad_input_is_one_sentence(without_type_checks):
    _, patches, vectors = both()
    with pytest.raises(ValueError, match="features must be among the 7 vectors of the basis; got 8"):
        LazyPatchTraining(patches.basis, patches.mix, patches.observed, patches.a, features=8)
    with pytest.raises(ValueError, match=r"mix of shape \(2, 5, 3, 6\) must be that of samples, patches and the 7 vec"):
        PatchTraining(patches.basis, patches.mix[..., :-1], patches.observed, patches.a)
    with pytest.raises(ValueError, match=r"vectors of shape \(2, 7, 19\) and filters of shape .* differ in d"):
        PatchTraining.of(vectors[..., 1:], patches.mix, patches.observed, TwoLayerCNN(D, 3, seed=SEEDS))
