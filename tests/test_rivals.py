"""Rivals: each is what it says it is, in coefficients and in d dimensions, and learns no feature."""

import numpy as np
import pytest
import torch

from flbook import observe, rivals
from flbook.data import LinearPrompts, SignalNoise, SingleIndex, TaskPool
from flbook.data.ten_digits import ten_digits
from flbook.dynamics import GramTraining
from flbook.estimators import tuned_kernel_ridge
from flbook.models import LeakyReLU, ReLUPower, TwoLayerCNN, identity, relu, softplus
from flbook.rivals import solved
from flbook.training.fit import fit
from flbook.training.losses import squared
from flbook.training.network import Training
from flbook.training.optimizers import Momentum

SEEDS, N, D, M, STEPS = (0, 1, 2), 6, 25, 3, 60
RULE = Momentum(0.2, 0.5)
BOTH_NOISES = pytest.mark.parametrize("orthogonal", [False, True], ids=["noise along mu", "orthogonal noise"])
BIAS = pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
ACTIVATION = pytest.mark.parametrize(
    "activation", [relu, LeakyReLU(0.2), ReLUPower(3.0), softplus], ids=["relu", "leaky", "cube", "softplus"]
)


def both(activation=relu, bias=False, orthogonal=False, scale=None):
    data = SignalNoise(n=N, d=D, mu_norm=2.0, flip_prob=0.3, orthogonal=orthogonal, exact_flips=False)
    sample = data.draw(SEEDS)
    cnn = TwoLayerCNN(D, M, 0.2, activation, scale, bias, SEEDS, torch.float64)
    return Training(cnn, sample.x, sample.observed), GramTraining.of(data, sample, cnn), sample


def weights(direct, params, sample):
    moved = params["mu"][..., None] * sample.mu + torch.einsum("...kn,...nd->...kd", params["xi"], sample.xi)
    return direct.start()["w"] + moved.unflatten(-2, (2, M))


@ACTIVATION
@BIAS
@BOTH_NOISES
def test_lazy_in_coefficients_is_lazy_in_weights(activation, bias, orthogonal):
    direct, gram, sample = both(activation, bias, orthogonal)
    direct, gram = direct.lazy(), gram.lazy()
    params, there = fit(gram, RULE, STEPS).params, fit(direct, RULE, STEPS).params
    torch.testing.assert_close(weights(direct, params, sample), there["w"], rtol=1e-10, atol=1e-11)
    if bias:
        torch.testing.assert_close(params["b"].unflatten(-1, (2, M)), there["b"], rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(gram.predict(params), direct.predict(there), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gram.train_loss(params), direct.train_loss(there), rtol=1e-9, atol=1e-12)
    assert (there["w"] - direct.start()["w"]).abs().max() > 0.05


def test_lazy_keeps_the_loss():
    direct, gram, _ = both()
    direct = Training(direct.model, direct.x, direct.observed, squared).lazy()
    assert direct.loss is squared and gram.lazy().loss is gram.loss


def direction(params, size):
    generator = torch.Generator().manual_seed(0)
    return {name: p + size * torch.randn(p.shape, generator=generator, dtype=p.dtype) for name, p in params.items()}


@ACTIVATION
@pytest.mark.parametrize("kind", [0, 1], ids=["weights", "coefficients"])
def test_lazy_is_the_tangent_of_the_network_at_its_start(activation, kind):
    network = both(activation, bias=True)[kind]
    lazy, start = network.lazy(), network.start()
    torch.testing.assert_close(lazy.predict(start), network.predict(start), rtol=1e-12, atol=1e-13)
    gradients = lazy.gradient(start), network.gradient(start)
    for name in start:
        torch.testing.assert_close(gradients[0][name], gradients[1][name], rtol=1e-11, atol=1e-13)
    # an affine function of the parameters, whose distance to the network is of second order
    f = [lazy.predict(direction(start, s)) for s in (0.0, 1.0, 2.0)]
    torch.testing.assert_close(f[2] - f[1], f[1] - f[0], rtol=1e-9, atol=1e-11)
    gap = [(lazy.predict(direction(start, s)) - network.predict(direction(start, s))).abs().max() for s in (1e-3, 1e-4)]
    assert gap[1] < gap[0] / 50 or gap[0] < 1e-12
    assert (lazy.predict(direction(start, 1.0)) - network.predict(direction(start, 1.0))).abs().max() > 1e-2


@BIAS
@BOTH_NOISES
def test_linear_in_coefficients_is_the_network_without_activation(bias, orthogonal):
    direct, gram, sample = both(relu, bias, orthogonal)
    gram = gram.linear()
    direct.model.activation = identity
    params, there = fit(gram, RULE, STEPS).params, fit(direct, RULE, STEPS).params
    torch.testing.assert_close(weights(direct, params, sample), there["w"], rtol=1e-10, atol=1e-11)
    # a linear classifier on the sum of the patches
    v = (there["w"][:, 0] - there["w"][:, 1]).mean(1)
    f = torch.einsum("ed,end->en", v, sample.x.sum(-2))
    offset = 2 * (there["b"][:, 0] - there["b"][:, 1]).mean(-1, keepdim=True) if bias else 0
    torch.testing.assert_close(gram.predict(params), f + offset, rtol=1e-10, atol=1e-10)


def frozen_by_hand(direct, rule, steps):
    """The last layer trained on the features of the first, all members, in d dimensions."""
    start = direct.start()
    z = torch.einsum("ejrd,enpd->enpjr", start["w"], direct.x)
    z = z + start["b"][:, None, None] if "b" in start else z
    phi = direct.model.activation(z).sum(2).flatten(-2)
    phi = phi / phi.square().mean((-2, -1), keepdim=True).sqrt()
    sign = torch.tensor([1.0] * M + [-1.0] * M, dtype=torch.float64)
    a = (direct.model.scale * sign).expand(len(SEEDS), -1).clone().requires_grad_()
    optimizer = torch.optim.SGD([a], rule.lr, momentum=rule.beta)
    for _ in range(steps):
        optimizer.zero_grad()
        f = torch.einsum("enk,ek->en", phi, a)
        torch.nn.functional.softplus(-direct.observed * f).mean(-1).sum().backward()
        optimizer.step()
    return a.detach(), torch.einsum("enk,ek->en", phi, a.detach())


@ACTIVATION
@BIAS
def test_frozen_trains_the_last_layer_on_normalised_features(activation, bias):
    direct, gram, _ = both(activation, bias)
    frozen = gram.frozen()
    assert frozen.samples.square().mean((-2, -1)).tolist() == pytest.approx([1] * 3)
    params = fit(frozen, RULE, STEPS).params
    a, f = frozen_by_hand(direct, RULE, STEPS)
    torch.testing.assert_close(params["a"], a, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(frozen.predict(params), f, rtol=1e-10, atol=1e-11)
    # fresh samples without noise: the features of the signal and of a patch of zeros, in the same normalisation
    w, b = direct.start()["w"].flatten(1, 2), direct.start()["b"].flatten(1, 2) if bias else 0
    mu = torch.zeros(D).double().index_fill(0, torch.tensor(0), 2.0)
    for outputs, sign in zip(frozen.test_outputs(params, torch.zeros(1, 2 * M).double()), (1, -1), strict=True):
        phi = activation(sign * (w @ mu) + b) + activation(0 * w[..., 0] + b)
        torch.testing.assert_close(outputs[:, 0], (a * phi / frozen.size).sum(-1), rtol=1e-9, atol=1e-10)


def test_frozen_gradient_is_the_finite_difference_and_the_norm_is_euclidean():
    frozen, h = both(bias=True)[1].frozen(), 1e-6
    params = frozen.start()
    for labels in (None, -frozen.observed):
        way = {"a": torch.randn(params["a"].shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)}
        up, down = (frozen.train_loss({"a": params["a"] + s * way["a"]}, observed=labels) for s in (h, -h))
        slope = (frozen.gradient(params, observed=labels)["a"] * way["a"]).sum(-1)
        torch.testing.assert_close((up - down) / (2 * h), slope, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(frozen.norm(way), way["a"].norm(dim=-1))


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


FOUR = ["linear", "lazy", "kernel", "random features"]


def test_the_tuned_penalty_is_that_of_leaving_out_one_sample_after_another():
    x, y, new = drawn(25, 6), drawn(25, seed=1) + drawn(25, 6)[:, 0], drawn(4, 6, seed=2)
    found = tuned_kernel_ridge(x @ x.T, new @ x.T, y)
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.model_selection import LeaveOneOut, cross_val_predict

    plain = Ridge(alpha=found.lam).fit(x.numpy(), y.numpy())
    torch.testing.assert_close(found.predictions, torch.tensor(plain.predict(new.numpy())))
    left_out = cross_val_predict(Ridge(alpha=found.lam), x.numpy(), y.numpy(), cv=LeaveOneOut())
    assert found.error == pytest.approx(((left_out - y.numpy()) ** 2).mean(), rel=1e-8)
    near = RidgeCV(alphas=found.lam * 10 ** torch.arange(-2, 2.1, 0.25).double().numpy()).fit(x.numpy(), y.numpy())
    assert near.alpha_ == pytest.approx(found.lam), "no other ridge of the grid is better"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_rival_answers_data_of_its_own_kind(dtype):
    x = drawn(120, 4)
    targets = {"linear": x[:, 0], "kernel": torch.exp(-x.square().sum(1)), "lazy": x[:, 0].relu()}
    for name, y in targets.items():
        errors = {one: (predict(x[:80].to(dtype), y[:80].to(dtype), x[80:].to(dtype)) - y[80:]).square().mean()
                  for one, predict in rivals.for_((x, y)).items()}
        assert list(errors) == FOUR and errors[name] < 0.3 * y.var(), name
        assert errors["linear"] < 1e-6 if name == "linear" else errors["linear"] > 1.5 * errors[name]
    assert rivals.for_((x, y))["kernel"](x[:80].to(dtype), y[:80].to(dtype), x[80:].to(dtype)).dtype == dtype


def test_pictures_and_classes():
    split = ten_digits(n=200, seed=0)
    x, y = split.x_test[:300], split.y_test[:300]
    rate = {name: (predict(split.x, split.y, x).argmax(1) == y).double().mean()
            for name, predict in rivals.for_((split.x, split.y)).items() if name != "lazy"}
    assert rate["kernel"] > 0.92 and rate["random features"] > 0.9 and rate["kernel"] > rate["linear"] > 0.8


def test_the_lazy_rival_of_a_network_of_ones_own_is_regression_with_its_tangent_kernel():
    x, y, new = drawn(20, 3), drawn(20, seed=1), drawn(5, 3, seed=2)
    f, params = observe.functional(torch.nn.Sequential(torch.nn.Linear(3, 9), torch.nn.Tanh(), torch.nn.Linear(9, 1)))
    params = {name: p.double() for name, p in params.items()}
    expected = tuned_kernel_ridge(observe.ntk(f, params, x), observe.ntk(f, params, new, x), y).predictions
    torch.testing.assert_close(rivals.for_((x, y), network=(f, params))["lazy"](x, y, new), expected)
    others = rivals.for_((x, y))["lazy"](x, y, new)
    assert (others - expected).abs().max() > 1e-3


def test_the_lazy_rival_of_a_stranger_on_pictures():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(64, 1))
    x = drawn(30, 3, 6, 6)
    y = (x[:, 0].mean((-2, -1)) > 0).double() * 2 - 1
    lazy = rivals.for_((x, y), network=observe.functional(module))["lazy"](x[:20], y[:20], x[20:])
    assert lazy.shape == (10,) and lazy.dtype == torch.float64 and bool(lazy.isfinite().all())


def test_the_signal_noise_model_has_its_own():
    data = SignalNoise(n=30, d=60, mu_norm=2.5, flip_prob=0.1)
    sample, fresh = data.draw(1), data.draw_test(500, 1)
    found = {name: predict(sample.x, sample.observed, fresh.x) for name, predict in rivals.for_(data).items()}
    error = {name: (f.sign() != fresh.y).double().mean() for name, f in found.items()}
    assert list(found) == [*FOUR, "averaging", "told the patch"]
    assert error["told the patch"] == 0 < error["averaging"] < 0.2 and error["lazy"] < 0.35
    w = sample.observed @ sample.x.sum(1)
    torch.testing.assert_close(found["averaging"], fresh.x.sum(1) @ w)


@pytest.mark.parametrize("link, linear", [(torch.tanh, False), (lambda z: z**2 - 1, True)], ids=["tanh", "even"])
def test_told_the_link_of_a_single_index(link, linear):
    data = SingleIndex(n=300, d=20, link=link)
    sample, fresh = data.draw(2), data.draw_test(300, 2)
    found = rivals.for_(data)
    risk = {name: (found[name](sample.x, sample.y, fresh.x) - fresh.target).square().mean()
            for name in ("linear", "kernel", "told the link")}
    # d/n of the label noise's variance, times the slope of the link
    assert risk["told the link"] < 0.01 < risk["kernel"]
    assert (risk["linear"] > 1) == linear


def test_it_looks_from_a_spectral_direction_and_from_others():
    """For an even link the average knows little, and one end of the second moment's spectrum leans on the direction."""
    data, found = SingleIndex(n=300, d=20, link=lambda z: z**2 - 1), []
    for seed in range(6):
        sample = data.draw(seed)
        starts = torch.from_numpy(np.stack(solved._starts(sample.x, sample.y)))
        torch.testing.assert_close(starts.norm(dim=1), torch.ones(solved.STARTS).double())
        assert ((starts @ starts.T).abs() > 0.99).sum() == solved.STARTS, "no two look from the same place"
        found.append(starts[:, 0].square())
    average, spectral = torch.stack(found)[:, 0].mean(), torch.stack(found)[:, 1:3].amax(1).mean()
    assert spectral > 0.7 > 0.5 > average


def test_bayes_rules_of_prompts():
    for data in (LinearPrompts(n=12, d=4, noise=0.5, queries=50),
                 LinearPrompts(n=12, d=4, noise=0.5, queries=50, task_covariance=(4.0, 1.0, 0.2, 0.1)),
                 LinearPrompts(n=3, d=4, noise=0.5, queries=50, pool=TaskPool(3))):  # fmt: skip
        prompts, found = data.draw(40, seed=0), rivals.for_(data)
        risk = {name: sum((found[name](x, y, new) - target).square().mean()
                          for x, y, new, target in zip(*prompts.context, prompts.query, prompts.target, strict=True))
                for name in ("linear", "Bayes")}  # fmt: skip
        assert risk["Bayes"] < 0.9 * risk["linear"]
    noiseless = LinearPrompts(n=12, d=4, queries=5).draw(1, seed=0)
    answer = rivals.for_(LinearPrompts(d=4))["Bayes"](noiseless.context.x[0], noiseless.context.y[0],
                                                      noiseless.query[0])
    torch.testing.assert_close(answer, noiseless.target[0])


def test_a_data_model_of_ones_own_registers_what_is_best():
    class Coins:
        pass

    with pytest.raises(ValueError, match="got Coins, for which no best method is registered"):
        rivals.for_(Coins())
    rivals.best_known.register(Coins, lambda data: {"a guess": lambda x, y, new: torch.zeros(len(new))})
    x = drawn(5, 2)
    assert rivals.for_(Coins())["a guess"](x, x[:, 0], x[:2]).tolist() == [0, 0]


@pytest.mark.parametrize("act, sentence", [
    (lambda x, y: rivals.for_((x, y[:4])), r"got \(9, 3\), \(4,\) and \(9, 3\)"),
    (lambda x, y: rivals.for_((x,)), "a pair of tensors, inputs and labels; got Tensor"),
    (lambda x, y: rivals.for_((x, y))["linear"](x, y, x[:, :2]), r"that of x but for their number.*\(9, 2\)"),
    (lambda x, y: rivals.for_((x, y))["linear"](0 * x, y, x), "x must not be the same for all of the 9 samples"),
    (lambda x, y: rivals.for_((x[:2], y[:2])), "with n at least 3"),
    (lambda x, y: rivals.for_(LinearPrompts(pool=TaskPool(3))), "one pool of standard normal tasks"),
    (lambda x, y: rivals.for_(LinearPrompts(d=2, task_covariance=(1.0, 0.0))), "without null directions"),
    (lambda x, y: tuned_kernel_ridge(torch.ones(9, 9), torch.ones(1, 9), y), "a kernel that tells them apart"),
])  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_of_solved_rivals_is_one_sentence(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act(drawn(9, 3), drawn(9, seed=1))
