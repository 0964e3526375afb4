"""Gates of a lazy ReLU network: those that flip are counted, fewer of them in wider networks."""

from flbook.lectures.representation.lazy_and_mean_field import relu_gates


def test_wider_networks_flip_fewer_gates_and_a_still_one_none():
    ends = relu_gates.experiment.run("tiny")
    for name in ("opened", "closed", "kernel_change"):
        narrow, wide = ends[name].mean("seed").values
        assert narrow > wide > 0, name
    still = relu_gates.experiment.measure(relu_gates.experiment.setting("tiny", time=1.0, n=1))
    assert float(still.opened.sum()) == 0  # one sample pulls only on the neurons that answer to it
