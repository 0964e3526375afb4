"""What samples weigh in a trained leaky ReLU network: the closed form below its border, and trained in d dimensions."""

import torch

from flbook.lectures.benign_overfitting.leaky_relu import margin, sample_weights
from flbook.lectures.benign_overfitting.leaky_relu.sample_weights import Setting, experiment


def test_below_the_border_it_has_the_coupling_of_its_leak():
    for leak in (0.1, 0.4):
        found = experiment.measure(Setting(n=20, m=4, leak=(leak,), n_snr2=(0.15,), seed=(0, 1), lr=0.05)).squeeze()
        assert abs(found.coupling - margin.network_coupling(leak)).max() < 0.05
        assert (found.own_on == 1).all() and (found.other_on == 0).all() and (found.train_error == 0).all()


def test_beyond_the_border_filters_switch():
    found = experiment.measure(Setting(n=20, m=4, n_snr2=(2.0,), seed=(0, 1))).squeeze()
    assert (found.coupling > 0.7).all()


def test_samples_have_the_lengths_that_it_says():
    setting = Setting(n=10, m=2, n_snr2=(0.5, 2.0), seed=(0, 1), d=10_000)
    gram = sample_weights.problem(setting, 0.1, 1.0).gram
    assert gram.x_x.shape == (2, 2, 10, 10)
    torch.testing.assert_close(gram.mu_mu[:, 0], torch.tensor([0.05, 0.2]).double())
    own = gram.x_x.diagonal(dim1=-2, dim2=-1) - gram.mu_mu[..., None]
    torch.testing.assert_close(own, torch.ones_like(own), rtol=0.1, atol=0)
