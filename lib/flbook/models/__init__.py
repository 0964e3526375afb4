"""Networks whose parameters carry leading ensemble axes."""

from flbook.models.activations import LeakyReLU, ReLUPower, erf, gelu, identity, relu, softplus, tanh
from flbook.models.cnn import TwoLayerCNN
from flbook.models.convnet import ConvNet
from flbook.models.random_features import RandomFeatures
from flbook.models.start import with_start
from flbook.models.two_layer import TwoLayer

__all__ = [
    "ConvNet",
    "LeakyReLU",
    "RandomFeatures",
    "ReLUPower",
    "TwoLayer",
    "TwoLayerCNN",
    "erf",
    "gelu",
    "identity",
    "relu",
    "softplus",
    "tanh",
    "with_start",
]
