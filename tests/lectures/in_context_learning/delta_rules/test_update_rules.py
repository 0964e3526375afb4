"""Six rules as one loop: one step by hand, an ensemble, the gate; chunks between the delta rule and one step."""

import pytest
import torch

from flbook.estimators import GradientStep
from flbook.lectures.in_context_learning import delta_rules
from flbook.lectures.in_context_learning.delta_rules.chunked_descent import ChunkedDescent
from flbook.lectures.in_context_learning.delta_rules.kalman_filter import KalmanFilter
from flbook.lectures.in_context_learning.delta_rules.update_rules import RULES, UpdateRules
from flbook.lectures.in_context_learning.shared.drifting_prompts import DriftingPrompts
from flbook.lectures.in_context_learning.shared.online import LeastMeanSquares
from flbook.shapes import Context

exact = {"dtype": torch.float64}


def test_two_examples_by_hand():
    x = torch.tensor([[[[2.0, 0.0], [1.0, 1.0]]]], **exact)
    y = torch.tensor([[[3.0, 5.0]]], **exact)
    theta = torch.tensor([-1.0, 0.0, 0.0], **exact).expand(6, 1, 3)  # s = 1/e, gate 1/2
    s, half = float(torch.exp(torch.tensor(-1.0, **exact))), 0.5
    read = dict(zip(RULES, UpdateRules(list(RULES)).memory(theta, Context(x, y))[:, 0, 0], strict=True))
    first, both = torch.tensor([2.0, 0.0], **exact), torch.tensor([1.0, 1.0], **exact)
    torch.testing.assert_close(read["attention"], s * (3 * first + 5 * both))
    torch.testing.assert_close(read["gated_attention"], half * s * (half * 3 * first + 5 * both))
    torch.testing.assert_close(read["mamba"], half * s * half * (half * 3 * first + 5 * both))
    torch.testing.assert_close(read["delta"], s * 3 * first + s * (5 - 6 * s) * both)
    one, two = s / (1 + 4 * s), s / (1 + 2 * s)
    torch.testing.assert_close(read["normalised"], one * 3 * first + two * (5 - 6 * one) * both)
    torch.testing.assert_close(read["gated_delta"], half * (half * one * 3 * first + two * (5 - half * 6 * one) * both))


def test_the_label_sets_mambas_time():
    x, y = torch.ones(1, 1, 2, 1, **exact), torch.tensor([[[0.0, 2.0]]], **exact)
    memory = UpdateRules(["mamba"]).memory(torch.tensor([[[0.0, 0.0, 1.0]]], **exact), Context(x, y))
    kept = torch.sigmoid(torch.tensor(-2.0, **exact))
    torch.testing.assert_close(memory.squeeze(), 0.5 * (1 - kept) * 2)


def test_an_ensemble_is_the_loop():
    context = DriftingPrompts(n=6, d=3, memory=0.9, noise=0.5).draw(5, (0, 1)).context
    theta = torch.randn(6, 2, 3, generator=torch.manual_seed(0), **exact)
    together = UpdateRules(list(RULES)).memory(theta, context)
    for row, name in enumerate(RULES):
        for seed in (0, 1):
            one = Context(*(part[seed : seed + 1] for part in context))
            alone = UpdateRules([name]).memory(theta[row : row + 1, seed : seed + 1], one)
            torch.testing.assert_close(alone[0, 0], together[row, seed])


def test_chunks_reach_from_the_delta_rule_to_one_step():
    drawn = DriftingPrompts(n=6, d=3, noise=0.5, queries=2).draw(4, 0)
    single, whole = ChunkedDescent(0.1, 1), ChunkedDescent(0.7, 6)
    torch.testing.assert_close(single(*drawn[:2]), LeastMeanSquares(0.1)(*drawn[:2]))
    torch.testing.assert_close(whole(*drawn[:2]), GradientStep(0.7)(*drawn[:2]))
    part = ChunkedDescent(0.7, 4)(*drawn[:2])  # four examples, then two
    first = 0.7 / 4 * torch.einsum("tn,tnd->td", drawn.context.y[:, :4], drawn.context.x[:, :4])
    left = drawn.context.y[:, 4:] - torch.einsum("tnd,td->tn", drawn.context.x[:, 4:], first)
    first = first + 0.7 / 4 * torch.einsum("tn,tnd->td", left, drawn.context.x[:, 4:])
    torch.testing.assert_close(part, torch.einsum("td,tqd->tq", first, drawn.query))


def test_the_filter_is_the_conditional_mean():
    memory, noise, n = 0.8, 0.6, 3
    drawn = DriftingPrompts(n=n, d=2, memory=memory, noise=noise, queries=2).draw(4, 0)
    x, y = drawn.context
    steps = torch.arange(n + 1, **exact)
    along = memory ** (steps[:, None] - steps).abs()  # covariance of a coordinate of the task over the examples
    inputs = torch.einsum("tid,tjd->tij", x, x) * along[:n, :n] + noise**2 * torch.eye(n, **exact)
    weights = torch.linalg.solve(inputs, y)
    mean = torch.einsum("ti,i,tid->td", weights, along[:n, n], x)
    torch.testing.assert_close(KalmanFilter(memory, noise)(*drawn[:2]), torch.einsum("td,tqd->tq", mean, drawn.query))


def test_training_lowers_the_risk():
    setting = delta_rules.experiment.setting("tiny")
    data = DriftingPrompts(n=5, d=3, noise=0.5).draw(16, (0, 1))
    rules, theta = UpdateRules(list(RULES)), delta_rules.start(setting, list(RULES))
    ends = [delta_rules.risk(rules.memory(theta, data.context), data.task)]
    theta = delta_rules.trained(rules, theta, data.context, data.task, 60)
    ends.append(delta_rules.risk(rules.memory(theta, data.context), data.task))
    assert (ends[1] < ends[0]).all()
    least = ends[1].mean(1)
    assert least[3:].max() < least[:3].min()  # residuals before labels


def test_mistakes():
    with pytest.raises(ValueError, match="noise must be"):
        KalmanFilter(0.9, 0.0)
    with pytest.raises(ValueError, match="chunk must be"):
        ChunkedDescent(0.1, 0)
