"""A readout in closed form, against gradient steps, ridge regression and autograd by hand."""

import pytest
import torch

from flbook.lectures.foundation_models.two_clocks.relaxation import Relaxation, landmarks


@pytest.fixture(scope="module")
def moments():
    """U and V of twelve features of forty training pairs, and of as many new ones."""
    g = torch.Generator().manual_seed(1)
    found = []
    for _ in range(2):
        phi, noise = (torch.randn(40, k, generator=g, dtype=torch.float64) for k in (12, 3))
        phi = phi + noise @ torch.ones(3, 12, dtype=torch.float64)
        found += [phi.T @ phi / 40, phi.T @ noise / 40, noise.square().mean()]
    return found


def loss(b, u, v):
    return float(1 + ((b @ u * b).sum() + 2 * (b * v.T).sum()) / len(b))


def test_steps_are_steps(moments):
    u, v, _, u_new, v_new, _ = moments
    flow, b = Relaxation.of(u, v, u_new, v_new), torch.zeros(3, 12, dtype=torch.float64)
    for k in range(30):
        train, test = flow.steps(torch.tensor([k]), 0.02)
        assert float(train) == pytest.approx(loss(b, u, v)) and float(test) == pytest.approx(loss(b, u_new, v_new))
        b = b - 0.02 * (b @ u + v.T)
    with pytest.raises(ValueError, match="descent diverges"):
        flow.steps(torch.tensor([1]), 10.0)


def test_flow_is_the_limit_of_short_steps_and_ridge_is_ridge(moments):
    u, v, _, u_new, v_new, _ = moments
    flow = Relaxation.of(u, v, u_new, v_new)
    short, smooth = flow.steps(torch.tensor([50_000]), 1e-4), flow.losses(torch.tensor([5.0]).double())
    for one, other in zip(short, smooth, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=0)
    b = -torch.linalg.solve(u + 0.3 * torch.eye(12), v).T
    assert float(flow.ridge(torch.tensor([0.3]).double())) == pytest.approx(loss(b, u_new, v_new))


def test_landmarks_by_hand():
    s = torch.tensor([1.0, 10, 100, 1000]).double()
    train, test = torch.tensor([[1.0, 0.6, 0.2, 0]]), torch.tensor([[1.0, 0.6, 0.8, 1.0]])
    marks = landmarks(train.double(), test.double(), s)
    assert float(marks["learned"]) == pytest.approx(10**0.5)  # 0.8 is half way between 1 and 0.6 on a logarithmic axis
    assert float(marks["half_gap"]) == pytest.approx(10 ** (1 + 0.5 / 0.6))
    assert float(marks["risen"]) == pytest.approx(10 ** (1 + 0.06 / 0.2))
    assert float(marks["best"]) == pytest.approx(0.6) and float(marks["end"]) == 1
    assert float(landmarks(train.double(), test.double(), s, 0.8)["learned"]) == pytest.approx(10**0.25)
