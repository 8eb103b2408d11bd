"""ResNet-18: 18 layers in basic blocks, features of 512.

The encoder of wang-liu, sce and graf on small images, and of tcl without labels.
"""

from torchvision.models.resnet import BasicBlock  # type: ignore[import-untyped]

from kontrast.models.encoders._torchvision import TorchvisionResNet


class ResNet18(TorchvisionResNet):
    """torchvision's ResNet-18 without its classifier.

    >>> ResNet18(image_size=32).feature_dim
    512
    """

    block = BasicBlock
    layers = (2, 2, 2, 2)
