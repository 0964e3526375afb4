"""The evidence of a lag: by hand, and that it finds the parent."""

import math

import pytest
import torch

from flbook.lectures.in_context_learning.induction import lag_evidence
from flbook.lectures.in_context_learning.induction.causal_chains import Contexts


def test_the_evidence_by_hand():
    tokens = torch.tensor([[0, 1, 0, 1]])
    drawn = Contexts(tokens, torch.tensor([0]), torch.tensor([1]), torch.ones(1, 2).double())
    found = lag_evidence.evidence(drawn, 2, 1.0)[0]
    # lag 1: one token 1 after 0... places 2 and 3 follow 1 and 0; lag 2: they follow themselves
    row = math.lgamma(2) - math.lgamma(3)  # one observation and a uniform prior, up to a constant of all lags
    assert found.tolist() == pytest.approx([2 * row, 2 * row])
    longer = torch.tensor([[0, 1, 0, 1, 0, 1]])
    one, two = lag_evidence.evidence(Contexts(longer, *drawn[1:]), 2, 1.0)[0].tolist()
    assert one == two, "an alternation speaks for both lags alike"


def test_bayes_finds_the_lag():
    setting = lag_evidence.experiment.setting(tokens=(3,), contexts=(30,), seed=tuple(range(20)))
    found = lag_evidence.run(setting).right.mean("seed").squeeze(drop=True)
    assert float(found.sel({"method": "Bayes"})) > 0.9 > 0.4 > float(found.sel({"method": "pooled"}))
