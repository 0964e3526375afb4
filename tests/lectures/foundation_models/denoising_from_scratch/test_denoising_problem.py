"""The loss against its definition, a sign in it, ensembles against loops, and sampling with exact denoisers."""

import numpy as np
import pytest
import torch

from flbook import fit, rng
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_networks import PictureDenoiser, PointDenoiser
from flbook.lectures.foundation_models.denoising_from_scratch.denoising_problem import (
    NoisePrediction,
    TrainingSet,
    predictor,
)
from flbook.lectures.foundation_models.denoising_from_scratch.noise_schedule import NoiseSchedule
from flbook.lectures.foundation_models.denoising_from_scratch.point_mixture import PointMixture
from flbook.lectures.foundation_models.denoising_from_scratch.reverse_diffusion import reverse_path
from flbook.training.optimizers import Adam

SCHEDULE, MODES = NoiseSchedule(), PointMixture.two_modes()
SEEDS = (3, 1)


class Constant(torch.nn.Module):
    """Answers with one number everywhere: its expected loss is 1 + c²."""

    def __init__(self, c: float):
        super().__init__()
        self.c = torch.nn.Parameter(torch.tensor(c))

    def forward(self, x, t):
        return self.c.expand(x.shape)


def test_the_loss_and_its_gradient_of_a_constant():
    problem = NoisePrediction(Constant(0.5), MODES, SCHEDULE, 0, batch=4000)
    params = problem.start()
    drawn = problem.sample(params["c"])
    assert float(problem.loss(params, drawn)) == pytest.approx(1.25, abs=0.06)
    by_hand = 2 * (0.5 - drawn.noise).mean()
    torch.testing.assert_close(problem.slope(params)["c"], by_hand)
    assert 1 <= int(drawn.t.min()) < 20 and 980 < int(drawn.t.max()) <= 1000


def test_training_comes_near_the_bayes_denoiser():
    problem = NoisePrediction(PointDenoiser(width=24, seed=SEEDS), MODES, SCHEDULE, SEEDS, batch=128)
    params = fit(problem, Adam(5e-3, horizon=350), 350).params
    predict = predictor(problem.model, params)
    for t in (100, 300):
        x = SCHEDULE.noised(MODES.draw(500, SEEDS).float(), torch.tensor(t), rng.normal((500, 2), SEEDS, "e").float())
        best = MODES.noise(x, SCHEDULE.kept(t))
        assert float((predict(x, t) - best).square().mean()) < 0.2
        assert float((predict(x, t) + best).square().mean()) > 0.5  # a changed sign is far off


def test_an_ensemble_is_its_members():
    pictures = rng.normal((2, 30, 1, 8, 8), 0, "pictures")
    both = NoisePrediction(PictureDenoiser(4, SEEDS), TrainingSet(pictures), SCHEDULE, SEEDS, batch=8)
    params = fit(both, Adam(1e-3), 3).params
    for member, seed in enumerate(SEEDS):
        one = NoisePrediction(PictureDenoiser(4, seed), TrainingSet(pictures[member]), SCHEDULE, seed, batch=8)
        alone = fit(one, Adam(1e-3), 3).params
        for name, p in alone.items():
            torch.testing.assert_close(params[name][member], p, rtol=1e-3, atol=1e-5)
    assert both.norm(params).shape == (2,)
    assert both.loss(params, both.sample(torch.zeros(()))).shape == (2,)


def test_a_batch_is_a_function_of_seed_and_step():
    problem = NoisePrediction(PointDenoiser(width=4), MODES, SCHEDULE, 0, batch=5)
    like = torch.zeros(())
    for one, same in zip(problem.at(7).sample(like), problem.at(3).at(7).sample(like), strict=True):
        assert torch.equal(one, same)
    assert not torch.equal(problem.at(7).sample(like).noise, problem.at(8).sample(like).noise)


def test_exact_denoisers_give_back_their_law():
    """With every step of the Bayes denoiser the samples have the modes' place, share and width."""
    steps = NoiseSchedule(200, 1e-3, 0.06)
    *_, (_, x) = reverse_path(lambda x, t: MODES.noise(x, steps.kept(t)), steps, (4000, 2))
    right = x[:, 0] > 0
    assert float(right.float().mean()) == pytest.approx(0.5, abs=0.03)
    assert float(x[right, 0].mean()) == pytest.approx(2.0, abs=0.03)
    np.testing.assert_allclose(x[right].std(0), 0.3, rtol=0.1)


def test_the_memoriser_samples_training_points():
    x_0 = rng.normal((20, 6), 0, "training set").float()
    memory = PointMixture(x_0)
    times = tuple(range(1000, 0, -10))
    *_, (t, x) = reverse_path(lambda x, t: memory.noise(x, SCHEDULE.kept(t)), SCHEDULE, (50, 6), times=times)
    assert t == 0 and float((x[:, None] - x_0).norm(dim=-1).amin(-1).max()) < 1e-3
    *_, (_, x) = reverse_path(lambda x, t: PointMixture(x_0, 0.5).noise(x, SCHEDULE.kept(t)), SCHEDULE, (50, 6),
                              times=times)
    assert float((x[:, None] - x_0).norm(dim=-1).amin(-1).median()) > 0.5


@pytest.mark.usefixtures("without_type_checks")
def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="^times must fall from 1000"):
        list(reverse_path(lambda x, t: x, SCHEDULE, (5, 2), times=(1000, 1000)))
    with pytest.raises(ValueError, match="^times must fall from 1000"):
        list(reverse_path(lambda x, t: x, SCHEDULE, (5, 2), times=(500, 100)))
    with pytest.raises(ValueError, match="^shape must be"):
        list(reverse_path(lambda x, t: x, SCHEDULE, (0, 2)))
    with pytest.raises(ValueError, match="^pictures must have one channel and even edges"):
        PictureDenoiser(4)(torch.zeros(2, 3, 8, 8), torch.ones(2))
