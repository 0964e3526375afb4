"""flbook: the experiments behind an executable lecture book on feature learning.

Importing the package costs nothing: every public name below is resolved on first use, so a reader of stored results
never pays for torch.
"""

from importlib import import_module

__version__ = "0.1.0"

# What a network or an experiment of one's own may ask for, and where it is: names, and files asked for by a dot. These
# are core even if a single lecture uses them; anything else that one lecture or one chapter uses lives there.
PUBLIC = {
    "SignalNoise": "flbook.data.signal_noise",
    "TwoLayerCNN": "flbook.models.cnn",
    "with_start": "flbook.models.start",
    "relu": "flbook.models.activations",
    "ReLUPower": "flbook.models.activations",
    "LeakyReLU": "flbook.models.activations",
    "logistic": "flbook.training.losses",
    "GradientDescent": "flbook.training.optimizers",
    "Momentum": "flbook.training.optimizers",
    "SharpnessAware": "flbook.training.optimizers",
    "LabelNoise": "flbook.training.optimizers",
    "LabelSmoothing": "flbook.training.optimizers",
    "SignDescent": "flbook.training.optimizers",
    "NormalisedDescent": "flbook.training.optimizers",
    "SpectralDescent": "flbook.training.optimizers",
    "Adam": "flbook.training.optimizers",
    "RMSProp": "flbook.training.optimizers",
    "WeightDecay": "flbook.training.optimizers",
    "Then": "flbook.training.optimizers",
    "Parametrisation": "flbook.training.parametrisation",
    "Training": "flbook.training.network",
    "WeightTraining": "flbook.dynamics.weights",
    "GramTraining": "flbook.dynamics.gram",
    "PatchTraining": "flbook.dynamics.patches",
    "draw_gram": "flbook.dynamics.wishart",
    "Batches": "flbook.training.batches",
    "PromptTraining": "flbook.training.prompted",
    "fit": "flbook.training.fit",
    "in_context": "flbook.estimators",
    "tangent_kernel": "flbook.dynamics",
    "functional": "flbook.observe.functions",
    "agop": "flbook.observe.jacobians",
    "ntk": "flbook.observe.jacobians",
    "alignment": "flbook.observe.jacobians",
    "sharpness": "flbook.observe.hessian",
    "hessian_trace": "flbook.observe.hessian",
    "curvature_along": "flbook.observe.hessian",
    "coordinate_check": "flbook.observe.widths",
    "border": "flbook.observe.bisection",
    "order_parameters": "flbook.observe.overlaps",
    "exponent": "flbook.observe.powers",
    "probe": "flbook.observe.read_out",
    "erase": "flbook.observe.read_out",
    "signal_and_noise": "flbook.observe.moved",
    "members": "flbook.observe.ensembles",
    "best_known": "flbook.rivals.solved",
    "Experiment": "flbook.runs",
    "Grid": "flbook.runs",
    "Claims": "flbook.claims.check",
}

# Public names that were renamed, by the old one: the new one, since which version, and in which the old one goes.
RENAMED: dict[str, tuple[str, str, str]] = {}

__all__ = [*sorted(PUBLIC), "__version__"]


def __getattr__(name: str):
    """Resolve a public name, or a submodule, when it is first asked for."""
    if name in PUBLIC:
        home = import_module(PUBLIC[name])
        return getattr(home, name, None) or import_module(f"{PUBLIC[name]}.{name}")
    if name in RENAMED:
        return __getattr__(import_module("flbook.deprecation").renamed(name, *RENAMED[name]))
    if not name.startswith("_"):
        try:
            return import_module(f"flbook.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"flbook.{name}":
                raise
    raise AttributeError(f"flbook has no name {name!r}; its public names are {', '.join(__all__)}")


def __dir__():
    return sorted([*globals(), *PUBLIC])
