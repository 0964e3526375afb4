"""Token-selection data: moments, places of the signals, the exact law of fresh samples, error messages."""

import math

import torch

from flbook.lectures.benign_overfitting.shared.tokens import TokenSelection, fresh_tokens

DATA = TokenSelection(n=10, d=40, mu_norm=6.0, varrho=0.25, tokens=5)


def test_each_token_has_its_signal():
    sample = DATA.draw(0)
    xi = sample.x - torch.einsum("nlc,cd->nld", DATA.pattern(sample.y), DATA.mu)
    assert torch.equal(DATA.draw(0).x, sample.x)
    assert abs(float(xi.std()) - 1) < 0.05 and abs(float(xi.mean())) < 0.05
    plus, minus = DATA.pattern(torch.tensor([1.0, -1.0]).double())
    assert plus.tolist() == [[1, 0], [0.25, 0], [0, 0.25], [0, 0], [0, 0]]
    assert minus.tolist() == [[0, 1], [0, 0.25], [0.25, 0], [0, 0], [0, 0]]
    assert int((sample.y != sample.observed).sum()) == 2


def test_the_head_reads_one_over_root_two():
    read = DATA.mu @ DATA.head
    torch.testing.assert_close(read, torch.tensor([1.0, -1.0]).double() / math.sqrt(2))


def test_test_noise_is_not_training_noise():
    train, test = DATA.draw(0), DATA.draw_test(10, 0)
    xi, fresh = (s.x - torch.einsum("nlc,cd->nld", DATA.pattern(s.y), DATA.mu) for s in (train, test))
    assert float((xi - fresh).abs().min(-1).values.max()) > 0.01
    assert torch.equal(test.y, test.observed)


def test_the_law_of_fresh_tokens_has_the_moments_of_drawn_ones():
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(40, generator=generator, dtype=torch.float64) * 0.3
    points = 40000
    standard = torch.randn(points, 10, generator=generator, dtype=torch.float64)
    plus = DATA.pattern(torch.tensor([1.0]).double())[0]
    scores, values = fresh_tokens(DATA.mu @ u, u @ u, torch.tensor(6.0).double(), plus, standard)
    x = torch.einsum("lc,cd->ld", plus, DATA.mu) + torch.randn(8000, 5, 40, generator=generator, dtype=torch.float64)
    for law, drawn in ((scores, x @ u), (values, x @ DATA.head), (scores * values, (x @ u) * (x @ DATA.head))):
        error = (drawn.std(0) * math.sqrt(1 / 8000 + 1 / points)).clamp(min=1e-3)
        assert ((law.mean(0) - drawn.mean(0)).abs() < 5 * error).all()
    torch.testing.assert_close(scores.std(0), torch.full((5,), float(u.norm())).double(), rtol=0.02, atol=0)
