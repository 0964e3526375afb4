"""Two modalities: moments against formulas, what is shared and what is not, refusals."""

import pytest
import torch

from flbook.lectures.foundation_models.contrastive.two_modalities import TwoModalities

DATA = TwoModalities(n=4000, d=6, mu_norm=2.0, second_norm=3.0, sigma_xi=0.5, sigma_eps=0.2, nu_norm=1.5)


def test_signals_share_the_label_and_noises_nothing():
    pairs = DATA.draw(0)
    for view, size in ((pairs.x, 2.0), (pairs.augmented, 2.0), (pairs.second, 3.0)):
        torch.testing.assert_close(view[:, 0, 0], size * pairs.y)
        assert float(view[:, 0, 1:].abs().max()) == 0
        assert float(view[:, 1].std()) == pytest.approx(0.5, rel=0.1)
    assert float(pairs.y.sum()) == 0
    across = torch.corrcoef(torch.cat([pairs.x[:, 1].T, pairs.second[:, 1].T]))[:6, 6:]
    assert float(across.abs().max()) < 0.08
    added = pairs.augmented[:, 1] - pairs.x[:, 1]
    assert float(added.std()) == pytest.approx(0.2, rel=0.05)
    assert abs(float((added * pairs.x[:, 1]).mean())) < 0.01


def test_orthogonal_noise_has_no_part_along_the_signals():
    pairs = TwoModalities(n=10, d=6, orthogonal=True).draw(0)
    assert all(float(view[:, 1, 0].abs().max()) == 0 for view in (pairs.x, pairs.augmented, pairs.second))


def test_fresh_samples_have_the_signal_of_the_test():
    fresh = DATA.draw_test(500)
    torch.testing.assert_close(fresh.x[:, 0, 0], 1.5 * fresh.y)
    assert float(fresh.x[:, 1].std()) == pytest.approx(0.5, rel=0.1)


def test_refusals():
    for wrong, name in (({"sigma_eps": -1.0}, "sigma_eps"), ({"second_norm": 0.0}, "second_norm"), ({"d": 1}, "d")):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            TwoModalities(**wrong)
