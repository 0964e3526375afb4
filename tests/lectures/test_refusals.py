"""What no field of a setting can refuse alone is refused in one sentence, before the first cell is computed."""

import pytest

from flbook import lectures
from flbook.runs.shelf import Shelf

BENIGN = "benign_overfitting/"
CONTEXT = "in_context_learning/"
REPRESENTATION = "representation/"
REFUSED = [
    (BENIGN + "double_descent", dict(data="digits", noise=1.5), r"noise must lie in \[0, 1\] for digits, a share of "),
    (BENIGN + "graph_convolution", dict(degree=(0.0, 30.0)), r"degree must lie in \[0, 12\], so that p is a pr"),
    (BENIGN + "graph_convolution", dict(n=21), "n must be even"),
    (BENIGN + "graph_convolution", dict(d=30), r"d must be at least n \+ k \+ 1 = 37"),
    (BENIGN + "output_layers", dict(d=40), r"d must be at least n \+ k \+ 1 = 41"),
    (BENIGN + "label_noise_images", dict(flip_prob=(0.01,)), "flip_prob must leave at least one flipped .*got 0.01"),
    (BENIGN + "label_noise_images", dict(every=20), "every must lie between 1 and epochs = 2; got 20"),
    (BENIGN + "label_noise_stages", dict(flip_prob=(0.0,)), "flip_prob must leave .* sample of n = 20; got 0.0"),
    (BENIGN + "label_noise_stages", dict(d=(20,)), "d must be at least"),
    (BENIGN + "leaky_relu", dict(n=(14,), gamma=(50.0,)), r"gamma must be a number in \(0, 1\); got 3.57"),
    (BENIGN + "relu_heatmap", dict(d=(100, 10)), r"d must be at least n \+ k \+ 1 = 41"),
    (BENIGN + "relu_heatmap", dict(d=(100, 1)), "d must be a whole number of at least 2; got 1"),
    (BENIGN + "relu_power_phase", dict(model=("forecast",), q=(2.0,)), "q must be above 2 for a forecast, since slow"),
    (BENIGN + "relu_power_phase", dict(d=(10,)), r"d must be at least n \+ k \+ 1 = 31"),
    (BENIGN + "vision_transformer", dict(d=(400, 40), n=(8,)), "d must be at least 47, so that 40 noise tokens and 5"),
    (BENIGN + "xor", dict(n=(22,)), "n must be a multiple of 4.*got 22"),
    (BENIGN + "xor", dict(d=(30,)), "d must be at least"),
    (CONTEXT + "attention_landscape", dict(missing=(3,)), "missing must lie between 0 and k - 1 = 2"),
    (CONTEXT + "attention_landscape", dict(d=5), "d must be even"),
    (CONTEXT + "concept_prompts", dict(d=5), "twice the number of concepts"),
    (CONTEXT + "concept_prompts", dict(n=63), r"n must be a whole number in"),
    (CONTEXT + "concept_prompts", dict(m=7), "m must be even"),
    (CONTEXT + "feature_depth", dict(layers=(5,)), "layers must be at most 4; got 5"),
    (CONTEXT + "learning_with_representations", dict(network=(1,)), r"network must be among \(0, 4, 5\); got \(1,\)"),
    (CONTEXT + "low_dimensional_targets", dict(r=(2, 12)), "at most d = 6; got 12"),
    (CONTEXT + "mamba_features", dict(r=7), "r must be at most d = 6; got 7"),
    *((CONTEXT + "mean_field_features", change, "k must be at least 3, teacher at least k")
      for change in (dict(n=4), dict(k=2), dict(teacher=4))),
    (CONTEXT + "mean_field_langevin", dict(width=(4, 64)), "neurons must be at least the largest width = 64; got 32"),
    (CONTEXT + "learned_basis", dict(hidden=100), "size must be at most"),
    (CONTEXT + "nonparametric_rates", dict(keep=9), "keep must be at most size = 5"),
    (CONTEXT + "perturbed_flow", dict(m=3), r"m must be at least k \+ 2 = 4; got 3"),
    (CONTEXT + "perturbed_flow", dict(lr=0.6), r"lr must be a number in \(0, 0.5\]; got 0.6"),
    (CONTEXT + "task_diversity", dict(kappa=(0.01,)), "kappa must leave at least one task; got 0.01 at d = 5"),
    (CONTEXT + "task_diversity", dict(tau=(1.0,)), "tau must differ from 1"),
    (CONTEXT + "test_time_training", dict(r=9), "at most d = 8; got 9"),
    (REPRESENTATION + "information_exponent", dict(alpha=(0.01, 1.0)), "alpha d must be at least 1, a sample; got alpha"
                                                                       " 0.01 and d 20"),
    (REPRESENTATION + "information_exponent", dict(link=(3, 4), statistic="gradient"), "link must be degrees that the "
                                                                       "activation has a part of, not 4"),
    (REPRESENTATION + "kernels_and_one_step", dict(psi_1=(2.0, 0.001)), "^n .*must be .*at least 1"),
    (REPRESENTATION + "lazy_and_mean_field", dict(width=(16, 7)), "width must be an even number of neurons"),
    (REPRESENTATION + "lazy_and_mean_field", dict(d=1, directions=2), "2 directions do not fit into d = 1"),
    (REPRESENTATION + "lazy_and_mean_field", dict(lr=20.0), "lr must be at most time; got lr=20, time=10"),
    (REPRESENTATION + "loss_path_kernel", dict(n=(20, 1797)), "n must be at most .* so that an image is left"),
    (REPRESENTATION + "loss_path_kernel", dict(width=7), "width must be an even number of neurons"),
    ("signal_noise/decomposition", dict(d=(300, 20)), r"d must be at least n \+ k \+ 1 = 27"),
    ("signal_noise/signal_noise_model", dict(d=(64, 1000)), "d must be 64 times a square.*got 1000"),
]


@pytest.mark.parametrize("name, change, sentence", REFUSED, ids=[f"{name} {change}" for name, change, _ in REFUSED])
def test_refused(name, change, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        Shelf(lectures).find(name).setting("tiny", **change)
    assert "\n" not in str(error.value)
