"""The limit of orthogonal noise: by hand, against training in coefficients, and its closed forms."""

import math

import pytest
import torch

from flbook.data.signal_noise import flipped_labels
from flbook.dynamics import GramTraining, draw_gram
from flbook.lectures.benign_overfitting.label_noise_stages import borders
from flbook.lectures.benign_overfitting.label_noise_stages.orthogonal_noise import OrthogonalNoise, fresh_flips_limit
from flbook.training.fit import fit
from flbook.training.optimizers import GradientDescent


def tensors(*values):
    """Numbers in float64."""
    return torch.tensor(values, dtype=torch.float64)


def test_first_step_by_hand():
    groups = OrthogonalNoise(tensors(4.0), tensors(0.2), m=2)
    assert groups.weight.tolist() == [0.25, 0.5, 0.25] and groups.seen.tolist() == [0, 0.5, 1]
    params = fit(groups, GradientDescent(0.1), 1).params
    assert params["signal"].item() == pytest.approx(0.1 * 4 / 2 * (0.8 - 0.2) / 2)
    torch.testing.assert_close(params["clean"], tensors([0.0, 0.025, 0.05]))
    torch.testing.assert_close(params["flipped"], params["clean"])
    assert groups.train_loss(groups.start()).item() == pytest.approx(math.log(2))
    assert groups.fitted_flipped(params).item() == 0 and groups.recycled_error(params).item() == 0


def test_an_ensemble_is_its_members():
    grid = OrthogonalNoise(tensors([2.0, 8.0], [2.0, 8.0]), tensors([0.1], [0.3]), m=5)
    whole = fit(grid, GradientDescent(0.3), 50).params
    for i, p in enumerate((0.1, 0.3)):
        for k, a in enumerate((2.0, 8.0)):
            one = fit(OrthogonalNoise(tensors(a), tensors(p), m=5), GradientDescent(0.3), 50).params
            for name in one:
                torch.testing.assert_close(one[name][0], whole[name][i, k])


def test_training_in_coefficients_tends_to_it():
    n, m, d, p, steps = 60, 12, 10**9, 0.2, 150
    strengths = tensors(2.0, 6.0)
    gram = draw_gram(n, 2 * m, d, sigma_0=0.01 / math.sqrt(d), seed=(0, 1, 2)).with_signals((strengths * d / n).sqrt())
    training = GramTraining(gram, *flipped_labels(n, p, 0), scale=1 / m)
    params = fit(training, GradientDescent(0.2 * n * m / d), steps).params
    z = training.patches(params)
    signal = ((training.respond(z["plus"], "plus") - training.respond(z["minus"], "minus")) @ training.a / 2).mean(0)
    groups = OrthogonalNoise(strengths, tensors(p), m=m)
    limit = fit(groups, GradientDescent(0.2), steps).params
    torch.testing.assert_close(signal, limit["signal"], rtol=0.05, atol=0)
    margin = (training.predict(params) * training.observed).mean(0)
    clean, flipped = (part @ groups.weight for part in groups.margins(limit))
    torch.testing.assert_close(margin[:, 12:].mean(-1), clean, rtol=0.05, atol=0)
    torch.testing.assert_close(margin[:, :12].mean(-1), flipped, rtol=0.1, atol=0)


def test_the_long_run_is_the_closed_form():
    strengths, p = tensors(1.5, 4.0, 6.0, 20.0), 0.2
    groups = OrthogonalNoise(strengths, tensors(p), m=None)
    params = groups.start()
    for _ in range(4000):
        grad, size = groups.gradient(params), 0.05 / groups.train_loss(params)
        params = {name: v - size.reshape(-1, *[1] * (v.ndim - 1)) * grad[name] for name, v in params.items()}
    share = params["signal"] / (params["signal"] + params["clean"][..., 0])
    torch.testing.assert_close(share, (1 - 2 * p) * strengths / (1 + strengths), rtol=0.01, atol=0)
    assert groups.recycled_error(params).tolist() == pytest.approx([0.5, 0.5, p / 2, p / 2])
    assert 4 < borders.recycled_boundary(p) < 6


def test_the_first_stage_begins_at_its_boundary():
    edge = borders.first_stage_boundary(0.2)
    assert edge == pytest.approx(1 / 0.6)
    params = fit(groups := OrthogonalNoise(tensors(0.99 * edge, 1.01 * edge), tensors(0.2), m=None),
                 GradientDescent(0.01), 1).params
    assert groups.fitted_flipped(params).tolist() == [1, 0]


def test_boundaries():
    found = borders.recycled_boundary([0.0, 0.1, 0.2, 0.25, 0.4]).tolist()
    assert found == pytest.approx([1, 5 / 3, 5, math.inf, math.inf])


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda: OrthogonalNoise(tensors(0.0), tensors(0.1)), r"n_snr2 must be positive and finite; got \[0.0\]"),
    (lambda: OrthogonalNoise(tensors(1.0), tensors(0.5)), r"flip_prob must be a number in \[0, 0.5\); got 0.5"),
    (lambda: OrthogonalNoise(tensors(1.0), tensors(0.1), m=0), "m must be at least 1.*got 0"),
])
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_under_fresh_flips_it_rests_where_smoothing_does():
    p, n_snr2, phi = 0.2, 4.0, 0.8
    found = fresh_flips_limit(n_snr2, p, tensors(0.0, 0.1, 80.0), phi)
    assert found["clean"][0] == 0 and found["clean"][1].item() == pytest.approx(0.1 * phi * (0.5 - p), rel=0.1)
    rest = math.log((1 - p) / p) / (1 + n_snr2 / (2 * phi))
    assert found["clean"][-1].item() == pytest.approx(rest, rel=1e-6)
    torch.testing.assert_close(found["signal"], n_snr2 / (2 * phi) * found["clean"])
