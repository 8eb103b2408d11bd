"""ResNet-50: 50 layers in bottleneck blocks, features of 2048.

The encoder of tcl with labels, and of the others on ImageNet.
"""

from torchvision.models.resnet import Bottleneck  # type: ignore[import-untyped]

from kontrast.models.encoders._torchvision import TorchvisionResNet


class ResNet50(TorchvisionResNet):
    """torchvision's ResNet-50 without its classifier.

    >>> ResNet50(image_size=32).feature_dim
    2048
    """

    block = Bottleneck
    layers = (3, 4, 6, 3)
