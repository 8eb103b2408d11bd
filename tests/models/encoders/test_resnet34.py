from __future__ import annotations

import pytest
import torchvision

from tests.models.encoders.of_torchvision import check_against_torchvision, check_small_stem

# torchvision's, less the classifier and the 7×7 stem, plus a 3×3 stem: known for CIFAR's ResNet-34
PARAMETERS, FEATURES = 21276992, 512


def test_small_images_keep_their_resolution_in_the_stem() -> None:
    check_small_stem("resnet34", parameters=PARAMETERS, features=FEATURES)


@pytest.mark.slow
def test_large_images_give_what_torchvision_gives() -> None:
    check_against_torchvision("resnet34", torchvision.models.resnet34)
