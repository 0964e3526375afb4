"""Modules of one's own: trained as plain PyTorch would train them, or refused in a sentence, never mistaken."""

import pytest
import torch
from torch import nn

from flbook.training.batches import Batches
from flbook.training.fit import fit
from flbook.training.losses import cross_entropy, squared
from flbook.training.network import ScaledTraining, Training
from flbook.training.optimizers import GradientDescent

N, D = 24, 5
X = torch.linspace(-2, 2, N * D).sin().reshape(N, D)
Y = torch.sin(3 * X[:, 0])


def module(outputs: int = 1) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(D, 16), nn.Tanh(), nn.Linear(16, outputs))


def trained_by_torch(net: nn.Module, steps: int, lr: float, loss) -> list:
    rule = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        rule.zero_grad()
        loss(net(X)).backward()
        rule.step()
    return list(net.parameters())


def same(params: dict, others: list) -> None:
    for own, other in zip(params.values(), others, strict=True):
        torch.testing.assert_close(own, other.detach(), rtol=1e-4, atol=1e-6)


def test_outputs_in_a_column_train_as_in_pytorch():
    problem = Training(module(), X, Y, squared)
    assert problem.ensemble == () and problem.predict(problem.start()).shape == (N,)
    others = trained_by_torch(module(), 20, 0.3, lambda f: (f[:, 0] - Y).square().mean() / 2)
    same(fit(problem, GradientDescent(0.3), 20).params, others)


def test_an_ensemble_may_have_its_outputs_in_columns_too():
    class Columns(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.stack([torch.ones(D, 1), torch.arange(D)[:, None]]))

        def forward(self, x):
            return x @ self.w

    problem = Training(Columns(), X, Y, squared)
    assert problem.ensemble == (2,)
    torch.testing.assert_close(problem.predict(problem.start()), torch.stack([X.sum(-1), X @ torch.arange(1.0 * D)]))


def test_logits_train_as_in_pytorch():
    labels = torch.arange(N) % 3
    problem = Training(module(3), X, labels, cross_entropy)
    others = trained_by_torch(module(3), 20, 0.3, lambda f: nn.functional.cross_entropy(f, labels))
    same(fit(problem, GradientDescent(0.3), 20).params, others)


def test_a_column_stays_one_in_batches_in_the_tangent_and_on_new_inputs():
    problem = Training(module(), X, Y, squared)
    assert Batches(problem, size=6).at(0).train_loss(problem.start()).shape == ()
    lazy = problem.lazy()
    torch.testing.assert_close(lazy.predict(lazy.start()), problem.predict(problem.start()))
    assert problem.predict(problem.start(), X[:7]).shape == (7,)


def test_pictures_need_no_word_about_their_axes():
    problem = Training(nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, 1)), torch.ones(3, 3, 4, 4), Y[:3], squared)
    assert problem.predict(problem.start()).shape == (3,)


@pytest.mark.parametrize("outputs", [3, N])
def test_more_outputs_than_the_loss_takes_are_refused_with_both_shapes(outputs):
    with pytest.raises(ValueError, match=rf"outputs must have the shape \(\*E, n\).* have \({N}, {outputs}\) for x of "
                                         rf"shape \({N}, {D}\)"):
        Training(nn.Linear(D, outputs), X, Y, squared)


def test_class_losses_refuse_outputs_without_classes():
    flat = nn.Sequential(nn.Linear(D, 1), nn.Flatten(0))
    with pytest.raises(ValueError, match=rf"outputs must have the shape \(\*E, n, classes\) for {N} labels.* \({N},\)"):
        Training(flat, X, torch.arange(N) % 3, cross_entropy)


def test_members_that_share_parameters_are_no_ensemble():
    class Stacked(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2, D))

        def forward(self, x):
            mixed = self.w + self.w.flip(0)
            return mixed @ x.T

    with pytest.raises(ValueError, match=r"its parameter w does not carry the axes \(2,\) of an ensemble"):
        Training(Stacked(), X, Y, squared)


@pytest.mark.parametrize("part, sentence", [
    (nn.BatchNorm1d(16), "part 1, BatchNorm1d, is in training mode, in which it changes its running averages"),
    (nn.Dropout(0.5), "part 1, Dropout, is in training mode, in which it draws other numbers")])
def test_what_changes_at_every_call_is_refused_and_taken_in_eval_mode(part, sentence):
    net = nn.Sequential(nn.Linear(D, 16), part, nn.Linear(16, 1))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(ValueError, match=sentence + r".*; call model.eval\(\) first"):
        Training(net, X, Y, squared)
    problem = Training(net.eval(), X, Y, squared)
    problem.gradient(problem.start())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_a_module_without_parameters_is_refused():
    with pytest.raises(ValueError, match="the model, Flatten, has no parameters to train"):
        Training(nn.Flatten(0), X, Y, squared)


def test_samples_that_fit_no_labels_name_the_attribute_that_says_how():
    with pytest.raises(ValueError, match=r"x holds 20 samples, .*; a model may say in `sample_axes` how many axes one"):
        Training(module(), X[:20], Y, squared)


def test_class_outputs_in_scaled_batches():
    labels = torch.arange(N) % 3
    problem = ScaledTraining(module(3), X, labels, cross_entropy, alpha=2.0)
    places = torch.tensor([1, 5, 20])
    part, moved = problem.batch(places), {name: p + 0.1 for name, p in problem.start().items()}
    torch.testing.assert_close(part.predict(moved), problem.predict(moved)[places])


def test_gradients_of_logits_are_refused():
    problem = Training(module(3), X, torch.arange(N) % 3, cross_entropy)
    with pytest.raises(ValueError, match=rf"gradients are those of one output a sample; .* \({N}, 3\)"):
        problem.output_gradients(problem.start())
