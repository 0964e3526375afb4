"""Networks whose parameters carry leading ensemble axes."""

from flbook.models.activations import identity, leaky_relu, relu, relu_power, softplus, tanh
from flbook.models.cnn import TwoLayerCNN
from flbook.models.convnet import ConvNet

__all__ = ["ConvNet", "TwoLayerCNN", "identity", "leaky_relu", "relu", "relu_power", "softplus"]
from flbook.models.two_layer import TwoLayer

__all__ = ["TwoLayer", "TwoLayerCNN", "identity", "leaky_relu", "relu", "relu_power", "softplus", "tanh"]
