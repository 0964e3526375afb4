"""The first gradient: against automatic differentiation, by hand, and in its limit."""

import pytest
import torch

from flbook.lectures.in_context_learning.induction import parent_gradient
from flbook.lectures.in_context_learning.induction.causal_chains import CausalContexts, Contexts
from flbook.lectures.in_context_learning.induction.parent_gradient import ParentTraining


@pytest.mark.parametrize("kind", parent_gradient.LABELS)
@pytest.mark.parametrize("still", [False, True])
def test_the_slope_is_the_gradient_of_the_loss(kind, still):
    problem = ParentTraining.of(CausalContexts(tokens=3, length=7).draw(30, (0, 1)), kind, first=0.5, still=still)
    a = torch.randn(2, 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    beta = torch.tensor([0.7, 2.0], dtype=torch.float64, requires_grad=True)
    problem.train_loss({"a": a, "beta": beta}).sum().backward()
    slope = problem.slope({"a": a.detach(), "beta": beta.detach()})
    torch.testing.assert_close(slope["a"], a.grad)
    torch.testing.assert_close(slope["beta"], torch.zeros(2).double() if still else beta.grad)


@pytest.mark.parametrize("kind", parent_gradient.LABELS)
def test_the_first_slope_is_beta_over_length_times_the_statistic(kind):
    drawn, length = CausalContexts(tokens=2, length=12).draw(50, 0), 12
    both = drawn.tokens.amin(-1) != drawn.tokens.amax(-1)  # one that lacks a token counts nothing in the statistic
    drawn = Contexts(*(part[both] for part in drawn))
    problem = ParentTraining.of(drawn, kind, first=1e-6, floor=1e-300)
    slope = -problem.slope(problem.start())["a"] / 1e-6 * length
    g = parent_gradient.gradient(drawn, kind).tril()
    each = torch.arange(1, length + 1.0)[:, None].double()
    expected = ((g - g.sum(-1, keepdim=True) / each) / each).tril()
    assert len(drawn.query) > 30
    torch.testing.assert_close(slope, expected, rtol=1e-5, atol=1e-5)


def test_the_statistic_by_hand():
    one = torch.tensor([[0, 1, 0]])
    drawn = Contexts(one, torch.tensor([0]), torch.tensor([1]), torch.tensor([[0.5, 0.5]], dtype=torch.float64))
    gain, asked = torch.tensor([-1.0, 2.0, -1.0]).double(), torch.tensor([1.0, 0.0, 1.0]).double()
    torch.testing.assert_close(parent_gradient.gradient(drawn), gain[:, None] * asked)
    soft = parent_gradient.gains(drawn, "soft")[0]
    torch.testing.assert_close(soft, torch.tensor([0.5 / (2 / 3), 0.5 * 3, 0.5 / (2 / 3)]).double() - 1)


def test_a_next_token_that_the_context_lacks_counts_nothing():
    drawn = Contexts(torch.tensor([[0, 0]]), torch.tensor([0]), torch.tensor([1]), torch.tensor([[0.5, 0.5]]))
    assert not parent_gradient.gradient(drawn, "sampled").any()


def test_long_contexts():
    limits = parent_gradient.limits(3, 1.0, 4, 20_000, 0)
    assert float(limits["slope"][1]) == pytest.approx(float(limits["information"][1])), "at the parent both are one"
    assert float(limits["information"][0]) == pytest.approx(2) and abs(float(limits["slope"][0])) < 0.02
    assert (limits["slope"][2:] < limits["slope"][1]).all()
    drawn = CausalContexts(tokens=3, length=200).draw(2000, (0, 1, 2, 3))
    g = 3 * parent_gradient.gradient(drawn, "soft").mean(0)
    for lag in range(4):
        assert float(g.diagonal(-lag).mean()) == pytest.approx(float(limits["slope"][lag]), abs=0.05)


def test_rows_are_right_if_their_largest_entry_is_at_the_parent():
    table = torch.tensor([[9.0, 0.0, 0.0], [2.0, 1.0, 9.0], [1.0, 3.0, 4.0]])
    assert parent_gradient.largest(table).tolist() == [0, 0, 2]
    assert parent_gradient.largest(table, itself=False)[1:].tolist() == [0, 1]
    assert float(parent_gradient.right(table, (-1, 0, 1))) == 0.5
    assert float(parent_gradient.right(table, (-1, 0, 1), itself=False)) == 1


def test_pooled_counts_see_that_two_places_agree():
    first = torch.arange(300) % 3
    tokens = torch.stack([first, torch.arange(300) // 100, first], -1)
    drawn = Contexts(tokens, first, first, torch.ones(300, 3).double() / 3)
    found = parent_gradient.pooled(drawn)
    assert float(found[2, 0]) == pytest.approx(2) and float(found[1, 0]) == pytest.approx(0, abs=0.01)
