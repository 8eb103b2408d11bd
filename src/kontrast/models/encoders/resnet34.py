"""ResNet-34: 34 layers in basic blocks, features of 512.

One of the encoders of tcl's stability runs.
"""

from torchvision.models.resnet import BasicBlock  # type: ignore[import-untyped]

from kontrast.models.encoders._torchvision import TorchvisionResNet


class ResNet34(TorchvisionResNet):
    """torchvision's ResNet-34 without its classifier.

    >>> ResNet34(image_size=32).feature_dim
    512
    """

    block = BasicBlock
    layers = (3, 4, 6, 3)
