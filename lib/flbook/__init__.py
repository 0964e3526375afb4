"""flbook: the experiments behind an executable lecture book on feature learning.

Importing the package costs nothing: every public name below is resolved on first use, so a reader of stored results
never pays for torch.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "SignalNoise": "flbook.data.signal_noise",
    "TwoLayerCNN": "flbook.models.cnn",
    "TiedDenoiser": "flbook.models.tied_denoiser",
    "relu": "flbook.models.activations",
    "relu_power": "flbook.models.activations",
    "leaky_relu": "flbook.models.activations",
    "logistic": "flbook.training.losses",
    "gradient_descent": "flbook.training.optimizers",
    "momentum": "flbook.training.optimizers",
    "sharpness_aware": "flbook.training.optimizers",
    "label_noise": "flbook.training.optimizers",
    "label_smoothing": "flbook.training.optimizers",
    "sign_descent": "flbook.training.optimizers",
    "normalised_descent": "flbook.training.optimizers",
    "adam": "flbook.training.optimizers",
    "rmsprop": "flbook.training.optimizers",
    "weight_decay": "flbook.training.optimizers",
    "then": "flbook.training.optimizers",
    "federated_averaging": "flbook.training.clients",
    "Training": "flbook.training.network",
    "WeightTraining": "flbook.dynamics.weights",
    "GramTraining": "flbook.dynamics.gram",
    "PatchTraining": "flbook.dynamics.patches",
    "draw_gram": "flbook.dynamics.wishart",
    "DenoisingTraining": "flbook.dynamics.denoising",
    "noising": "flbook.theory.noise_prediction",
    "Batches": "flbook.training.batches",
    "fit": "flbook.training.fit",
    "results": "flbook.runs",
    "Claims": "flbook.book.claims",
}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str):
    """Resolve a public name, or a submodule, when it is first asked for."""
    if name in _HOME:
        home = import_module(_HOME[name])
        return getattr(home, name, None) or import_module(f"{_HOME[name]}.{name}")
    if not name.startswith("_"):
        try:
            return import_module(f"flbook.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"flbook.{name}":
                raise
    raise AttributeError(f"flbook has no name {name!r}; its public names are {', '.join(__all__)}")


def __dir__():
    return sorted([*globals(), *_HOME])
