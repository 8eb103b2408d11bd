r"""AutoAugment with the policy found on CIFAR-10: 25 sub-policies of two operations each.

    (1)  each sample draws one of the 25 sub-policies, and then each of its two operations happens with the probability
         beside it below, at the magnitude of the level beside that (0 … 9)
    (2)  movements and blends (shear, translate, rotate; brightness, colour, contrast, sharpness) draw a sign, too

(Cubuk et al. 2019, Table 7 of the appendix, as torchvision has it; the operations: equations (1) to (6) of `_levels`.
They work on whole levels 0…255: values in 0…1 are rounded to them on the way in. Magnitudes are the float32 numbers of
``torchvision.transforms.v2.AutoAugment``, as the last bit can decide over a pixel moved or a level.)

Deviates: DeepVoltaire's code, from which many copies descend, fills with grey (128, 128, 128) what a movement leaves
empty; torchvision, and ours unless ``fill`` says otherwise, with black.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.augment._inputs import Size, height_and_width, number, rgb_or_grey
from kontrast.augment._levels import MOVES, change, move
from kontrast.augment.operation import Operation, Params

Step = tuple[str, float, int | None]

POLICY: tuple[tuple[Step, Step], ...] = (
    (("Invert", 0.1, None), ("Contrast", 0.2, 6)),
    (("Rotate", 0.7, 2), ("TranslateX", 0.3, 9)),
    (("Sharpness", 0.8, 1), ("Sharpness", 0.9, 3)),
    (("ShearY", 0.5, 8), ("TranslateY", 0.7, 9)),
    (("AutoContrast", 0.5, None), ("Equalize", 0.9, None)),
    (("ShearY", 0.2, 7), ("Posterize", 0.3, 7)),
    (("Color", 0.4, 3), ("Brightness", 0.6, 7)),
    (("Sharpness", 0.3, 9), ("Brightness", 0.7, 9)),
    (("Equalize", 0.6, None), ("Equalize", 0.5, None)),
    (("Contrast", 0.6, 7), ("Sharpness", 0.6, 5)),
    (("Color", 0.7, 7), ("TranslateX", 0.5, 8)),
    (("Equalize", 0.3, None), ("AutoContrast", 0.4, None)),
    (("TranslateY", 0.4, 3), ("Sharpness", 0.2, 6)),
    (("Brightness", 0.9, 6), ("Color", 0.2, 8)),
    (("Solarize", 0.5, 2), ("Invert", 0.0, None)),
    (("Equalize", 0.2, None), ("AutoContrast", 0.6, None)),
    (("Equalize", 0.2, None), ("Equalize", 0.6, None)),
    (("Color", 0.9, 9), ("Equalize", 0.6, None)),
    (("AutoContrast", 0.8, None), ("Solarize", 0.2, 8)),
    (("Brightness", 0.1, 3), ("Color", 0.7, 0)),
    (("Solarize", 0.4, 5), ("AutoContrast", 0.9, None)),
    (("TranslateY", 0.9, 9), ("TranslateY", 0.7, 9)),
    (("AutoContrast", 0.9, None), ("Solarize", 0.8, 3)),
    (("Equalize", 0.8, None), ("Invert", 0.1, None)),
    (("TranslateY", 0.7, 9), ("AutoContrast", 0.9, None)),
)
SIGNED = (*MOVES, "Brightness", "Color", "Contrast", "Sharpness")


@functools.lru_cache(maxsize=1024)
def magnitude(name: str, level: int | None, height: int, width: int) -> float:
    """What a level 0 … 9 means for images of this size, to the last bit as torchvision has it.

    >>> round(magnitude("TranslateX", 9, 32, 32), 2), magnitude("Posterize", 7, 32, 32), magnitude("Rotate", 3, 32, 32)
    (14.5, 5.0, 10.0)
    """
    if level is None:
        return 0.0
    if name == "Posterize":
        return float(round(8 - level * 4 / 9))
    largest = {"TranslateX": 150.0 / 331.0 * width, "TranslateY": 150.0 / 331.0 * height, "Rotate": 30.0}
    first, last = (1.0, 0.0) if name == "Solarize" else (0.0, largest.get(name, 0.3 if "Shear" in name else 0.9))
    return float(torch.linspace(first, last, 10, dtype=torch.float32, device="cpu")[level])


@dataclass(frozen=True)
class AutoAugment(Operation):
    """``fill`` in 0…1 is what movements leave where no pixel comes from.

    >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    >>> params = AutoAugment().draw(4, (32, 32), torch.Generator().manual_seed(0))
    >>> [POLICY[i] for i in params["policy"].tolist()][0]
    (('Brightness', 0.1, 3), ('Color', 0.7, 0))
    >>> views = 255 * AutoAugment().apply(images, params)
    >>> bool((views - views.round()).abs().max() < 1e-4)
    True
    """

    fill: float = 0.0

    def __post_init__(self) -> None:
        number("fill", self.fill, least=0.0, most=1.0)

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        height_and_width("AutoAugment", size)
        policy = torch.randint(len(POLICY), (n,), generator=generator)
        probability = torch.tensor([[step[1] for step in steps] for steps in POLICY])
        on = torch.rand(n, 2, generator=generator) < probability[policy]
        negative = torch.rand(n, 2, generator=generator) < 0.5
        return Params(n, {"policy": policy, "on": on, "negative": negative})

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        rgb_or_grey("AutoAugment", images)
        x = images.mul_(255.0).round_()
        for slot in (0, 1):
            self._step(x, slot, params)
        return x.div_(255.0)

    def _step(self, x: Tensor, slot: int, params: Params) -> None:
        """The first or second operation of every sample, gathered by what it is."""
        height, width = x.shape[2:]
        rows: dict[str, list[int]] = {}
        values: dict[str, list[float]] = {}
        moves: list[str] = []
        on, negative = params["on"][:, slot].tolist(), params["negative"][:, slot].tolist()
        for i, policy in enumerate(params["policy"].tolist()):
            if on[i]:
                name, _, level = POLICY[policy][slot]
                value = magnitude(name, level, height, width)
                key = "move" if name in MOVES else name
                rows.setdefault(key, []).append(i)
                values.setdefault(key, []).append(-value if negative[i] and name in SIGNED else value)
                if key == "move":
                    moves.append(name)
        for key, which in rows.items():
            index = torch.tensor(which, device=x.device)
            m = torch.tensor(values[key], dtype=torch.float64)
            part = x.index_select(0, index)
            x[index] = move(part, moves, m, round(255 * self.fill)) if key == "move" else change(part, key, m)
