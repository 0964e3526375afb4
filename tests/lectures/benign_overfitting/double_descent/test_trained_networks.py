"""Networks trained in both layers: their weights are counted, and enough of them fit wrong labels."""

from flbook.lectures.benign_overfitting.double_descent import trained_networks
from flbook.models.layers import MLP


def test_the_weights_are_those_of_the_network():
    assert trained_networks.threshold(sum(part.numel() for part in MLP((64, 7, 10)).parameters())) == 7


def test_enough_weights_fit_wrong_labels_and_the_best_step_is_not_the_last():
    setting = trained_networks.experiment.setting("tiny", wrong=(0.2,), width=(2, 40), n=20, steps=1500, looks=20)
    ends = trained_networks.experiment.measure(setting).mean("seed")
    few, many = (ends.sel(wrong=0.2, width=width) for width in (2, 40))
    assert many.train_risk < 1e-3 < 0.1 < few.train_risk
    assert (ends.least_risk < ends.risk).all()
