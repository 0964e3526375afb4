"""Networks whose parameters carry leading ensemble axes."""

from flbook.models.activations import gelu, identity, leaky_relu, relu, relu_power, softplus, tanh
from flbook.models.cnn import TwoLayerCNN
from flbook.models.convnet import ConvNet
from flbook.models.two_layer import TwoLayer

__all__ = [
    "ConvNet",
    "TwoLayer",
    "TwoLayerCNN",
    "gelu",
    "identity",
    "leaky_relu",
    "relu",
    "relu_power",
    "softplus",
    "tanh",
]
from flbook.models.vgg import VGG

__all__ = ["VGG", "ConvNet", "TwoLayerCNN", "identity", "leaky_relu", "relu", "relu_power", "softplus"]
