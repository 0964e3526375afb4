"""What the numbers of every experiment owe: they are labelled, cells do not see each other, and a stored result can be
recomputed. Experiments are found by name; none is imported to collect these tests."""

import os

import numpy as np
import pytest
import xarray as xr

from flbook import lectures
from flbook.runs import Experiment, Grid, settings
from flbook.runs.shelf import Shelf

SHELF = Shelf(lectures)
NAMES = list(SHELF.modules())
EVERY = pytest.mark.parametrize("name", NAMES)
STORED = [name for name in NAMES if SHELF.file(name).with_name(name.rpartition("/")[2] + ".nc").is_file()]

# Relative and absolute tolerance where a cell computed alone differs from one in a grid by more than float64's
# rounding: training in float32, or a test error, which is a share of so many points.
LOOSE = {
    "benign_overfitting/graph_convolution": (1e-4, 0.002),
    "benign_overfitting/label_noise_images": (1e-4, 0.05),  # one of 20 flipped pictures
    "benign_overfitting/label_noise_stages": (1e-4, 0.011),
    "benign_overfitting/leaky_relu": (1e-2, 0.004),
    "benign_overfitting/output_layers": (1e-4, 0.002),
    "benign_overfitting/relu_heatmap": (2e-3, 0.008),
    "foundation_models/contrastive_digits": (1e-4, 0.02),  # sixteen of 797 test pictures, after Adam in float32
    "foundation_models/layer_costs": (1e-4, 2e-6),  # a small difference of float32 losses near 1.3
    "foundation_models/variations": (1e-4, 0.02),
    "representation/photographs": (0.06, 0.05),  # float32, and shares of 500 crops
    "representation/convnet_path": (2e-3, 1e-4),  # training in float32
    "representation/tuned_rates": (1e-4, 1e-6),  # steps in float32 at the largest rates
    "representation/deep_rates": (1e-4, 1e-6),  # Adam in float32
    "representation/loss_path_kernel": (2e-3, 1e-4),
    "representation/trained_quadratic": (1e-3, 1e-6),  # Adam in float32
    "benign_overfitting/relu_power_phase": (2e-3, 0.005),
    "benign_overfitting/vision_transformer": (2e-3, 0.01),
    "benign_overfitting/attention_border": (2e-3, 0.02),  # attention just where it jumps, in float32
    "benign_overfitting/attention_rivals": (2e-3, 0.01),
    "benign_overfitting/xor": (2e-3, 0.005),
    "benign_overfitting/xor_one_patch": (2e-3, 0.01),
    "benign_overfitting/xor_crossover": (2e-3, 0.01),
    "signal_noise/signal_noise_model": (2e-3, 5e-3),
    "training_strategies/cutmix": (1e-3, 0.008),
    "training_strategies/cut_sizes": (1e-4, 1e-5),
    "training_strategies/adam_and_gradient_descent": (1e-4, 2.1e-3),  # one of 500 fresh samples
    "training_strategies/feature_border": (1e-4, 2.1e-3),
    "training_strategies/label_noise_gd": (2e-3, 0.005),
    "training_strategies/mixture_of_experts": (0.05, 0.02),  # a sample that goes to another expert at one step
    "training_strategies/out_of_distribution": (1e-4, 1e-5),  # float32, and features that are unlearned to near zero
    "training_strategies/sign_convnet": (0.01, 0.01),  # signs of small float32 gradients; one picture of a class
    "training_strategies/relu_rival": (0.1, 0.02),  # three thousand steps of Adam in float32 on fresh batches
    "in_context_learning/attention_landscape": (2e-3, 1e-6),
    "in_context_learning/bayes_gap": (1e-4, 1e-6),
    "in_context_learning/concept_prompts": (1e-4, 1e-6),
    "foundation_models/tanh_denoiser": (5e-3, 1e-4),  # moments are sums in float32
    "foundation_models/wide_features": (5e-3, 1e-4),  # as for tanh_denoiser
    "in_context_learning/feature_depth": (1e-3, 1e-3),  # Adam in float32 on weights that have no gradient
    "in_context_learning/learning_with_representations": (1e-3, 1e-4),  # float32 through four layers
    # Training in float32 on fresh batches ends elsewhere on another processor; "bent" is a search with many valleys.
    "in_context_learning/linear_attention": (0.1, 1e-4),  # three per cent in one of its cells, 1e-6 in most
    "in_context_learning/low_dimensional_targets": (1e-3, 1e-5),
    "in_context_learning/mean_field_features": (0.1, 1e-3),  # the modified dynamics shakes when a float32 loss stalls
    "in_context_learning/mean_field_langevin": (1e-4, 1e-6),
    "in_context_learning/sparse_parity": (1e-4, 0.02),  # a kernel's solver stops when all members are exact enough
    "in_context_learning/learned_basis": (0.1, 1e-3),  # kernel ridge is the best in hindsight over all seeds of a run
    "in_context_learning/pretraining_pools": (1e-3, 1e-4),  # as for training_laws
    "in_context_learning/task_diversity": (1e-4, 1e-9),  # a ridge of 1e-10 of the features' size
    "in_context_learning/test_time_training": (1e-3, 1e-5),
    "in_context_learning/training_laws": (1e-3, 1e-4),  # Adam in float32 on biases of keys, which have no gradient
    "in_context_learning/vector_arithmetic": (1e-3, 0.004),
    "training_strategies/long_tails": (1e-4, 0.006),  # a test picture of a class
    "training_strategies/noisy_digits": (1e-4, 4e-3),  # one of 257 test pictures
    "training_strategies/sign_tokens": (1e-4, 1.1e-3),  # Adam in float32; one of 1,000 fresh samples
    "training_strategies/small_batches": (1e-3, 2.1e-3),
}
# Experiments whose stored result takes more than a test may, or hangs on rounding; the reason, and who checks it.
TOO_LONG = {
    "foundation_models/distilled_attention": "the softmax loss lacks most axes, so a cell would be every way to share "
                                             "at every budget; the lecture's test computes cells again",
    "foundation_models/other_networks": "as for distilled_attention",
    "in_context_learning/attention_landscape": "float32's rounding steers the first large steps of the flow; the "
                                               "lecture's test compares the steps before that",
    "in_context_learning/concept_prompts": "float32's rounding steers training at the largest noise; the lecture's "
                                           "test compares cells at less",
    "foundation_models/denoising_from_scratch": "float32's rounding steers training; the lecture's test compares what "
                                                "needs no network, and the losses of the checkpoint",
    "foundation_models/more_networks": "a network is trained for a minute and distilled twelve times; the lecture's "
                                       "test runs a shorter one, and holds what is stored",
    "foundation_models/trained_denoiser": "float32's rounding steers thousands of steps of Adam; the lecture's test "
                                          "compares the first four",
    "in_context_learning/feature_depth": "eighty networks are trained for minutes on a GPU; the lecture's test "
                                         "recomputes the errors of those that are stored",
    "in_context_learning/fine_tuning": "float32's rounding steers hundreds of steps of Adam; the lecture's test "
                                       "compares the first ten",
    "in_context_learning/own_chain": "a score near a half-integer is rounded as float32 has it; the lecture's test "
                                     "runs all ways on other draws",
    "in_context_learning/pretrained_transformer": "twenty networks are trained on a GPU, whose prompts the CPU does "
                                                  "not draw; its tests hold what its risk is",
    "in_context_learning/pretraining_pools": "eighteen networks are trained for ten minutes; its test recomputes the "
                                             "errors of three of them",
    "in_context_learning/mean_field_features": "ten thousand steps a cell; the lecture's test compares the first "
                                               "hundred",
    "in_context_learning/label_alone": "150 networks are trained on a GPU, whose batches the CPU does not draw",
    "in_context_learning/text_heads": "twenty-four transformers are trained on a GPU, on the source of the "
                                      "Python that is there",
    "in_context_learning/fixed_copies": "twenty minutes, on the source of the Python that is there",
    "in_context_learning/trained_decoder": "180 decoders are trained on a GPU, whose batches the CPU does not draw",
    "in_context_learning/training_laws": "thirty networks are trained for a quarter of an hour; the lecture's test "
                                         "recomputes errors from those that are stored",
    "in_context_learning/what_is_icl": "one network is trained for twelve minutes; its test recomputes errors from it",
    "representation/grokking": "a minute and a half a cell; the lecture's test computes the first rounds "
                               "of one seed again",
    "representation/trained_quadratic": "float32's rounding steers hundreds of steps of Adam; the lecture's "
                                        "test compares the start",
    "representation/prompt_rates": "float32's rounding steers two hundred steps of Adam; the lecture's test computes "
                                   "small rates of it again",
    "training_strategies/parity_hover": "float32's rounding steers training at the edge of stability; the lecture's "
                                        "test compares its beginning",
    "training_strategies/picture_tuning": "as for rules_on_pictures",
    "training_strategies/rules_on_pictures": "float32's rounding steers training on wrong labels; the page runs three "
                                             "of the rows again and prints by how much they are off",
    "training_strategies/every_rule": "at the largest steps float32's rounding decides; the lecture's test compares "
                                      "cells at others",
}
# Experiments whose first or last cell takes from ten seconds to a minute: their middle one is computed again alone.
SLOW = {
    "benign_overfitting/trained_networks",
    "in_context_learning/bayes_gap",
    "in_context_learning/learned_basis",
    "in_context_learning/linear_attention",
    "in_context_learning/low_dimensional_targets",
    "in_context_learning/sparse_parity",
    "in_context_learning/task_diversity",
    "in_context_learning/test_time_training",
    "representation/convnet_path",
    "representation/escape",
    "representation/online_sgd",
    "signal_noise/decomposition",
    "training_strategies/expert_clusters",
    "training_strategies/label_noise_phases",
    "training_strategies/relu_rival",
}
# Which cells of a stored result are computed again: the middle and the last value of every axis. With other kernels
# (`make kernels`) none, since a stored result comes of another machine as it is.
PLACES = {} if os.environ.get("ATEN_CPU_CAPABILITY") else {"middle": 0.5, "last": 1.0}
AGAIN = [(name, place) for name in STORED for place in PLACES if place == "middle" or name not in SLOW]


def cell(setting: Grid, place: float, dataset: xr.Dataset) -> dict[str, tuple]:
    """One value of every axis, except of those that a variable lacks: it is an average or a search along them."""
    shared = set.intersection(*(set(variable.dims) for variable in dataset.data_vars.values()))
    return {axis: (values[round(place * (len(values) - 1))],) for axis, values in settings.axes(setting).items()
            if axis in shared}


@EVERY
def test_a_labelled_dataset_whose_cells_do_not_see_each_other(name):
    """One run of the tiny preset; its first and its last cell once more, alone."""
    experiment = SHELF.find(name)
    tiny, (rtol, atol) = experiment.setting("tiny"), LOOSE.get(name, (1e-6, 1e-9))
    whole = experiment.run(tiny)
    labelled(whole, experiment, tiny)
    for place in (0.0, 1.0):
        chosen = cell(tiny, place, whole)
        alone = experiment.run(tiny.thinned(**chosen))
        for what, values in alone.data_vars.items():
            there = {axis: list(value) for axis, value in chosen.items() if axis in values.dims}
            same_close(values, whole[what].sel(there), rtol, atol, f"{what} at {chosen}")


def labelled(dataset: xr.Dataset, experiment: Experiment, setting: Grid) -> None:
    assert set(settings.axes(setting)) <= set(dataset.dims)
    for axis, values in settings.axes(setting).items():
        assert tuple(dataset[axis].values.tolist()) == values, axis
    for what, variable in {**dataset.data_vars, **dataset.coords}.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, what
    assert dataset.attrs["experiment"] == experiment.name and dataset.attrs["version"] == experiment.version


def same_close(one: xr.DataArray, other: xr.DataArray, rtol: float, atol: float, what: str) -> None:
    if one.dtype.kind in "fc":
        np.testing.assert_allclose(one, other.transpose(*one.dims), rtol=rtol, atol=atol, err_msg=what)
    else:
        assert (one == other).all(), what


@pytest.mark.parametrize("name, place", AGAIN)
def test_cells_of_the_stored_result_again(name, place):
    """Axes that a variable of the stored result lacks, such as one it averages over, are run whole."""
    if name in TOO_LONG:
        pytest.skip(TOO_LONG[name])
    experiment = SHELF.find(name)
    stored = experiment.stored()
    larger, (rtol, atol) = experiment.setting(experiment.larger), LOOSE.get(name, (1e-6, 1e-9))
    chosen = cell(larger, PLACES[place], stored)
    again = experiment.trimmed(experiment.run(larger.thinned(**chosen)))
    compared = 0
    for what, values in again.data_vars.items():
        there = {axis: list(value) for axis, value in chosen.items() if axis in values.dims}
        if what in stored and values.dtype.kind in "fiu":
            step = stored[what].encoding.get("scale_factor", 0.0)  # of packed numbers
            same_close(values, stored[what].sel(there), max(rtol, 1e-6), max(atol, step), what)
            compared += 1
    assert compared
