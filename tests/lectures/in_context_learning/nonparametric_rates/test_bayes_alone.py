from itertools import product

import torch

from flbook.lectures.in_context_learning.nonparametric_rates.hidden_basis import Setting, alone


def test_it_is_the_average_over_all_sets_of_frequencies_by_their_evidence():
    setting = Setting(pairs=2, noise=0.7)  # frequencies 1 to 4 and 5 to 16
    data = setting.data(0, 12)
    context, query, *_ = data.draw(3, 0)
    features, lam = setting.dictionary()[0].features, torch.diag(torch.tensor(data.variance).double())
    expected = []
    for x, y, at in zip(context.x, context.y, query, strict=True):
        evidence, means = [], []
        for first, second in product(range(4), range(4, 16)):
            own = [2 * first, 2 * first + 1, 2 * second, 2 * second + 1]
            phi, there = features(x)[:, own], features(at)[:, own]
            covariance = phi @ lam @ phi.mT + 0.49 * torch.eye(12).double()
            law = torch.distributions.MultivariateNormal(torch.zeros(12).double(), covariance)
            evidence.append(law.log_prob(y))
            means.append(there @ lam @ phi.mT @ torch.linalg.solve(covariance, y))
        expected.append(torch.softmax(torch.stack(evidence), 0) @ torch.stack(means))
    torch.testing.assert_close(alone(setting, data)(context, query), torch.stack(expected))
