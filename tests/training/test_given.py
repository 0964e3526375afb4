"""A given start, given data and given noise: the library and plain PyTorch, from the same draws, give one number."""

import pytest
import torch

from flbook.data import SignalNoise
from flbook.data.prompts import Prompts
from flbook.dynamics.gram import GramTraining
from flbook.dynamics.weights import WeightTraining
from flbook.lectures.foundation_models.contrastive.paired_training import TWO_MODALITIES, ContrastiveTraining
from flbook.lectures.foundation_models.contrastive.patch_encoder import PatchEncoder
from flbook.lectures.foundation_models.contrastive.two_modalities import Pairs
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_problem import GivenNoise, NoisePrediction
from flbook.lectures.foundation_models.shared.info_nce import other_labels
from flbook.lectures.in_context_learning.shared.attention import LinearAttention
from flbook.lectures.training_strategies.cutmix.pasting import CutMix, Paste, PastedTraining
from flbook.lectures.training_strategies.mixture_of_experts.experts import Experts
from flbook.lectures.training_strategies.mixture_of_experts.recipe import ExpertRecipe, ExpertTraining
from flbook.models import TwoLayer, TwoLayerCNN, with_start
from flbook.models.activations import square
from flbook.shapes import Context
from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.network import Training
from flbook.training.optimizers import Adam, GradientDescent, LabelNoise, Momentum, SharpnessAware
from flbook.training.prompted import PromptTraining

n, d, m, eta, T = 8, 60, 3, 0.2, 12
F = torch.float64


@pytest.fixture
def draws():
    """Labels, noise, start and flips, from a stream of their own."""
    g = torch.Generator().manual_seed(3)
    y = torch.tensor([1.0, -1.0], dtype=F).repeat(n // 2)
    xi, w_0 = torch.randn(n, d, generator=g, dtype=F), 0.01 * torch.randn(2, m, d, generator=g, dtype=F)
    eps = 1 - 2 * (torch.rand(T, n, generator=g) < 0.2).to(F)
    places = torch.stack([torch.randperm(n, generator=g)[:4] for _ in range(T)])
    return y, xi, w_0, eps, places


def output(w, x):
    f = torch.einsum("jrd,npd->njrp", w, x).relu().sum(-1).mean(-1)
    return f[:, 0] - f[:, 1]


def slope(w, x, y):
    w = w.detach().requires_grad_()
    return torch.autograd.grad(torch.log1p(torch.exp(-y * output(w, x))).mean(), w)[0]


def patches(y, xi, strength=2.0):
    return torch.stack([strength * y[:, None] * torch.eye(1, d, dtype=F), xi], 1)


def problem(y, xi, w_0, kind=WeightTraining):
    data = SignalNoise(n=n, d=d, mu_norm=2.0)
    return kind.of(data, data.given(y, xi), with_start(TwoLayerCNN(d, m), w=w_0))


def test_descent_in_weights_and_in_coefficients(draws):
    y, xi, w_0, *_ = draws
    w, x = w_0, patches(y, xi)
    for _ in range(T):
        w = w - eta * slope(w, x, y)
    here = problem(y, xi, w_0)
    torch.testing.assert_close(fit(here, GradientDescent(eta), T).params["w"], w, rtol=0, atol=1e-9)
    there = problem(y, xi, w_0, GramTraining)
    got = there.predict(fit(there, GradientDescent(eta), T).params)
    torch.testing.assert_close(got, output(w, x), rtol=1e-6, atol=0)


def test_a_start_given_to_fit(draws):
    y, xi, w_0, *_ = draws
    training = Training(TwoLayerCNN(d, m, dtype=F), patches(y, xi), y)
    expected = fit(problem(y, xi, w_0), GradientDescent(eta), T).params["w"]
    given = w_0.clone()
    assert fit(training, GradientDescent(eta), T, start={"w": given}).params["w"].equal(expected)
    assert given.equal(w_0)
    with pytest.raises(ValueError, match=r"start must hold the parameters .*\(2, 3, 60\).*got \{'w': \(2, 60\)\}"):
        fit(training, GradientDescent(eta), T, start={"w": w_0[:, 0]})


def test_label_noise_with_given_flips(draws):
    y, xi, w_0, eps, _ = draws
    w, x = w_0, patches(y, xi)
    for t in range(T):
        w = w - eta * slope(w, x, eps[t] * y)
    rule = LabelNoise(eta, flip_prob=0.2, noise=eps)
    torch.testing.assert_close(fit(problem(y, xi, w_0), rule, T).params["w"], w, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="noise holds the draws of 12 steps.*step 12"):
        fit(problem(y, xi, w_0), rule, T + 1)
    with pytest.raises(ValueError, match=r"noise must have the shape \(steps, \*E, 8\).*got \(12, 7\)"):
        fit(problem(y, xi, w_0), LabelNoise(eta, 0.2, noise=eps[:, 1:]), T)
    with pytest.raises(ValueError, match="noise must hold -1"):
        LabelNoise(eta, 0.2, noise=eps + 1)


def test_sam(draws):
    y, xi, w_0, *_ = draws
    w, x = w_0, patches(y, xi)
    for _ in range(T):
        first = slope(w, x, y)
        w = w - eta * slope(w + 0.1 * first / first.norm(), x, y)
    got = fit(problem(y, xi, w_0), SharpnessAware(eta, radius=0.1), T).params["w"]
    torch.testing.assert_close(got, w, rtol=0, atol=1e-9)


def test_adam(draws):
    y, xi, w_0, *_ = draws
    w, x, a, b = w_0, patches(y, xi), 0.0, 0.0
    for t in range(1, T + 1):
        g = slope(w, x, y)
        a, b = 0.9 * a + 0.1 * g, 0.999 * b + 0.001 * g**2
        w = w - 0.01 * (a / (1 - 0.9**t)) / ((b / (1 - 0.999**t)).sqrt() + 1e-8)
    torch.testing.assert_close(fit(problem(y, xi, w_0), Adam(0.01), T).params["w"], w, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [WeightTraining, GramTraining])
def test_momentum_in_given_batches(draws, kind):
    y, xi, w_0, _, places = draws
    w, x, v = w_0, patches(y, xi), 0.0
    for t in range(T):
        v = 0.9 * v + slope(w, x[places[t]], y[places[t]])
        w = w - 0.02 * v
    here = problem(y, xi, w_0, kind)
    got = fit(Batches(here, size=4, given=places), Momentum(0.02, 0.9), T).params
    torch.testing.assert_close(here.predict(got), output(w, x), rtol=1e-6, atol=1e-12)


def test_label_noise_in_given_batches(draws):
    y, xi, w_0, eps, places = draws
    w, x = w_0, patches(y, xi)
    for t in range(T):
        w = w - eta * slope(w, x[places[t]], (eps[t] * y)[places[t]])
    got = fit(Batches(problem(y, xi, w_0), size=4, given=places), LabelNoise(eta, 0.2, noise=eps), T).params["w"]
    torch.testing.assert_close(got, w, rtol=0, atol=1e-9)


@pytest.mark.parametrize("places, said", [
    (torch.zeros(3, 5, dtype=torch.long), r"shape \(steps, 4\)"), (torch.full((3, 4), 8), "from 0 to 7")])
def test_given_batches_are_places(draws, places, said):
    with pytest.raises(ValueError, match=said):
        Batches(problem(*draws[:3]), size=4, given=places)


def test_local_steps_from_given_starts(draws):
    """Federated averaging is `fit` from the mean of what the clients reached."""
    y, xi, w_0, *_ = draws
    x, parts = patches(y, xi), (slice(0, 4), slice(4, 8))
    w, mean = w_0, w_0
    for _ in range(3):
        local = []
        for part in parts:
            one = w
            for _ in range(4):
                one = one - eta * slope(one, x[part], y[part])
            local.append(one)
        w = sum(local) / 2
        clients = [Training(TwoLayerCNN(d, m, dtype=F), x[part], y[part]) for part in parts]
        mean = sum(fit(client, GradientDescent(eta), 4, start={"w": mean}).params["w"] for client in clients) / 2
    torch.testing.assert_close(mean, w, rtol=0, atol=1e-9)


def test_cutmix_with_given_partners_and_patches(draws):
    y, xi, w_0, *_ = draws
    g = torch.Generator().manual_seed(5)
    partner, own = torch.randint(n, (T, n), generator=g), torch.rand(T, n, 2, generator=g) < 0.5
    w, x = w_0, patches(y, xi)
    for t in range(T):
        keep = own[t][..., None].to(F)
        mixed, share = keep * x + (1 - keep) * x[partner[t]], own[t].to(F).mean(-1)
        leaf = w.detach().requires_grad_()
        z = torch.einsum("jrd,npd->njrp", leaf, mixed).square().sum(-1).mean(-1)
        f, label = z[:, 0] - z[:, 1], share * y + (1 - share) * y[partner[t]]
        loss = (torch.nn.functional.softplus(f) - (1 + label) / 2 * f).mean()
        w = w - eta * torch.autograd.grad(loss, leaf)[0]
    cnn = with_start(TwoLayerCNN(d, m, activation=square), w=w_0)
    vectors = torch.cat([2 * torch.eye(1, d, dtype=F), xi])
    mix = torch.zeros(n, 2, n + 1, dtype=F)
    mix[:, 0, 0], mix[:, 1, 1:] = y, torch.eye(n, dtype=F)
    here = PastedTraining.of(vectors, mix, y, cnn, recipe=CutMix(), given=Paste(partner, own))
    z = torch.einsum("jrd,npd->njrp", w, x).square().sum(-1).mean(-1)
    got = here.predict(fit(here, GradientDescent(eta), T).params)
    torch.testing.assert_close(got, z[:, 0] - z[:, 1], rtol=1e-6, atol=1e-12)


def test_experts_under_given_routing_noise():
    M, J, K, P, dim, samples = 3, 2, 6, 4, 10, 20
    g = torch.Generator().manual_seed(7)
    x, y = torch.randn(samples, P, dim, generator=g, dtype=F), torch.tensor([1.0, -1.0], dtype=F).repeat(10)
    w, b = (0.1 * torch.randn(M, 2, J, *size, generator=g, dtype=F) for size in ((dim,), ()))
    r, theta = torch.rand(K, samples, M, generator=g, dtype=F), torch.zeros(M, dim, dtype=F)
    model = with_start(Experts(dim, M, J, dtype=F), w=w, b=b)
    for t in range(K):
        theta, w, b = leaves = [one.detach().requires_grad_() for one in (theta, w, b)]
        h, best = (x.sum(1) @ theta.T + r[t]).max(1)
        z = torch.einsum("npd,msjd->mnpsj", x, w) + b[:, None, None]
        f = (z**3).sum((2, 4))[best, torch.arange(samples)]
        loss = torch.log1p(torch.exp(-torch.tanh(y * h * (f[:, 0] - f[:, 1]) / 2))).mean()
        g_theta, g_w, g_b = torch.autograd.grad(loss, leaves)
        length = g_w.flatten(1).norm(dim=1) + g_b.flatten(1).norm(dim=1) + 1e-30
        theta = theta - 0.1 * g_theta
        w, b = w - 1e-3 * g_w / length[:, None, None, None], b - 1e-3 * g_b / length[:, None, None]
    got = fit(ExpertTraining(model, x, y, given=r), ExpertRecipe(stop=0, rise=10), K).params
    for name, value in (("theta", theta), ("w", w), ("b", b)):
        torch.testing.assert_close(got[name], value, rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match=r"given must have the shape \(steps, \*E, 20, 3\)"):
        ExpertTraining(model, x, y, given=r[..., 1:])


def test_contrastive_training_on_given_pairs(draws):
    y, xi, w_0, *_ = draws
    g = torch.Generator().manual_seed(9)
    second, eps = torch.randn(n, d, generator=g, dtype=F), 0.1 * torch.randn(n, d, generator=g, dtype=F)
    x, x_2 = patches(y, xi), patches(y, second, 4.0)
    signals = torch.eye(1, d, dtype=F) * torch.tensor([[2.0], [4.0]], dtype=F)

    def loss(a, partner, others):
        to_partner = (a * partner.detach()).sum((1, 2))
        to_others = torch.einsum("ipr,jpr->ij", a, others.detach()).masked_fill(y[:, None] == y, -torch.inf)
        return (torch.logaddexp(to_partner, to_others.logsumexp(1)) - to_partner).mean()

    w = w_0
    for _ in range(T):
        w = w.detach().requires_grad_()
        a, b = (x @ w[0].T).relu(), (x_2 @ w[1].T).relu()
        value = loss(a, b, b) + loss(b, a, a)
        w = w - 0.05 * torch.autograd.grad(value, w)[0]
    encoders = tuple(with_start(PatchEncoder(d, m), w=one) for one in w_0)
    pairs = Pairs(x, patches(y, xi + eps), x_2, y, signals)
    here = ContrastiveTraining.of(pairs, encoders, TWO_MODALITIES, other_labels(y))
    got = here.train_loss(fit(here, GradientDescent(0.05), T - 1).params)
    torch.testing.assert_close(got, value.detach(), rtol=1e-6, atol=0)


def test_linear_attention_on_given_prompts():
    B, examples, dim, steps = 30, 6, 3, 10
    g = torch.Generator().manual_seed(11)
    beta, x, query = (torch.randn(steps, B, *size, generator=g, dtype=F)
                      for size in ((dim,), (examples, dim), (1, dim)))
    y, target = torch.einsum("tbd,tbnd->tbn", beta, x), torch.einsum("tbd,tbqd->tbq", beta, query)
    gamma = torch.zeros(dim, dim, dtype=F)
    for t in range(steps):
        leaf = gamma.requires_grad_()
        said = (y[t] * torch.einsum("bnd,de,be->bn", x[t], leaf, query[t, :, 0])).mean(1)
        gamma = (leaf - 0.05 * torch.autograd.grad((said - target[t, :, 0]).square().mean(), leaf)[0]).detach()
    prompts = Prompts(Context(x, y), query, target, beta)
    here = PromptTraining(LinearAttention(torch.zeros(dim, dim, dtype=F), examples), prompts)
    torch.testing.assert_close(fit(here, GradientDescent(0.05), steps).params["gamma"], gamma, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="prompts holds the draws of 10 steps"):
        fit(here, GradientDescent(0.05), steps + 1)


def test_a_denoiser_under_given_noise():
    from flbook.lectures.foundation_models.denoising_from_scratch import SCHEDULE
    g = torch.Generator().manual_seed(13)
    x, noise = torch.randn(T, 16, 2, generator=g, dtype=F), torch.randn(T, 16, 2, generator=g, dtype=F)
    t = torch.randint(1, SCHEDULE.steps + 1, (T, 16), generator=g)
    kept = torch.as_tensor(SCHEDULE.alpha_bar, dtype=F)[t][..., None]

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.eye(2, dtype=F))

        def forward(self, x, t):
            return x @ self.a

    a = torch.eye(2, dtype=F)
    for k in range(T):
        leaf, noisy = a.detach().requires_grad_(), kept[k].sqrt() * x[k] + (1 - kept[k]).sqrt() * noise[k]
        a = a - eta * torch.autograd.grad((noisy @ leaf - noise[k]).square().mean(), leaf)[0]
    here = NoisePrediction(Scaled(), None, SCHEDULE, batch=16, given=GivenNoise(x, t, noise))
    torch.testing.assert_close(fit(here, GradientDescent(eta), T).params["a"], a, rtol=0, atol=1e-9)


def test_a_start_is_refused_in_a_sentence(draws):
    cnn, w_0 = TwoLayerCNN(d, m), draws[2]
    with pytest.raises(ValueError, match="TwoLayerCNN has no parameter v; it has w"):
        with_start(cnn, v=w_0)
    with pytest.raises(ValueError, match=r"start of w must have the shape \(2, 3, 60\).*got \(2, 60\)"):
        with_start(cnn, w=w_0[:, 0])
    with pytest.raises(ValueError, match="of one dtype"):
        with_start(TwoLayerCNN(d, m, bias=True), w=w_0, b=torch.zeros(2, m))
    assert not cnn.w.to(F).equal(w_0) and with_start(cnn, {"w": w_0}).w.equal(w_0)


def test_what_remembers_the_start_is_given_it_too():
    given = torch.randn(6, 4, dtype=F)
    net = with_start(TwoLayer(4, 6, start="centred"), w=given)
    assert net.w_0.equal(given) and not net(torch.randn(5, 4, dtype=F)).any()


def test_given_data_are_checked(draws):
    y, xi, *_ = draws
    data = SignalNoise(n=n, d=d, mu_norm=2.0)
    assert data.given(y, xi).x.equal(patches(y, xi))
    with pytest.raises(ValueError, match=r"y, xi and observed must have the shapes .*got \(8,\), \(8, 59\) and \(8,\)"):
        data.given(y, xi[:, 1:])
    with pytest.raises(ValueError, match="labels, -1 or"):
        data.given(2 * y, xi)
