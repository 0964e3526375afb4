"""The Gram matrix of a prompt's inputs from sums of exponentials, and averages drawn from their law."""

import torch

from flbook.lectures.in_context_learning.nonparametric_rates.empirical_gram import averages, empirical_gram
from flbook.lectures.in_context_learning.nonparametric_rates.function_spaces import fourier_line, hidden_line


def test_it_is_the_gram_matrix_of_the_features():
    x = torch.rand(3, 2, 7, dtype=torch.float64)
    for basis, keep in ((fourier_line(9), 5), (fourier_line(4), 4), (hidden_line(3, seed=1), 2)):
        f = basis.features(x[..., None])
        rows = torch.tensor(basis.frequency)[:, 0]
        torch.testing.assert_close(empirical_gram(x, rows, keep), (f.mT @ f / 7)[..., :keep, :])


def test_averages_have_the_mean_and_the_covariance_of_labels():
    x, basis = torch.rand(12, dtype=torch.float64), fourier_line(5)
    f, task, noise = basis.features(x[:, None]), torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0]).double(), 0.7
    gram = empirical_gram(x, torch.tensor(basis.frequency)[:, 0], 3)
    unit = torch.randn(40000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    drawn = averages(gram.expand(len(unit), -1, -1), task.expand(len(unit), -1), unit, noise / 12**0.5)
    torch.testing.assert_close(drawn.mean(0), f[:, :3].mT @ (f @ task) / 12, atol=5e-3, rtol=0)
    torch.testing.assert_close(drawn.mT.cov(), noise**2 * gram[:, :3] / 12, atol=2e-3, rtol=0)
