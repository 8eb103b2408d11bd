"""How other projects name the parts of a ResNet or an EfficientNet, and how their networks differ from ours.

| names in the file | whose | read as torchvision's |
|---|---|---|
| ``layer2.0.shortcut.0.weight`` | SupContrast; lightly's ResNetGenerator | ``layer2.0.downsample.0.weight`` |
| ``0.weight``, ``1.weight``, ``4.0.conv1.weight``, … ``7.…`` | lightly: a Sequential of a torchvision ResNet's children | ``conv1.weight``, ``bn1.weight``, ``layer1.0.conv1.weight``, … ``layer4.…`` |
| the same with ``2.…`` to ``5.…`` | lightly: a Sequential of a ResNetGenerator's children | the same, with the note `WITHOUT_RELU` |

and of an EfficientNet (B0 to B8, Lite0 to Lite4) by lukemelas' EfficientNet-PyTorch and the packages that go back to it:

| names in the file | read as timm's |
|---|---|
| ``_conv_stem.weight``, ``_bn0.…``, ``_conv_head.weight``, ``_bn1.…``, ``_fc.…`` | ``conv_stem.weight``, ``bn1.…``, ``conv_head.weight``, ``bn2.…``, ``classifier.…`` |
| ``_blocks.3._expand_conv.weight`` and ``_bn0``, ``_depthwise_conv`` and ``_bn1``, ``_project_conv`` and ``_bn2`` | ``blocks.2.0.conv_pw.weight`` and ``bn1``, ``conv_dw`` and ``bn2``, ``conv_pwl`` and ``bn3`` |
| ``_blocks.0._depthwise_conv.weight`` and ``_bn1``, ``_project_conv`` and ``_bn2`` (a block that does not expand) | ``blocks.0.0.conv_dw.weight`` and ``bn1``, ``conv_pw`` and ``bn2`` |
| ``_se_reduce.…``, ``_se_expand.…`` | ``se.conv_reduce.…``, ``se.conv_expand.…`` |

Its blocks are numbered through, timm's by stage. A stage begins where the depthwise convolution gets another size, or the
block's output another number of channels; of two stages alike in both (B0's fourth and fifth differ in channels) there are
none in this family.

The prefixes of those names (``encoder.module.``, ``backbone.``, ``module.encoder_q.``) are found by
`kontrast.models.weights`.

Sources: SupContrast's networks/resnet_big.py; lightly's models/resnet.py and its examples; solo-learn's
solo/methods/base.py; EfficientNet-PyTorch's model.py.
"""  # noqa: E501 (a table)

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

STAGE = re.compile(r"((?:[^.]+\.)*?)(\d+)\.0\.conv1\.weight")
SHORTCUT = re.compile(r"(\blayer\d+\.\d+)\.shortcut\.")
STAGES = 4
BLOCK = re.compile(r"((?:[^.]+\.)*?)_blocks\.(\d+)\.(_\w+)\.(.+)")
WHOLE = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
SQUEEZE = {"_se_reduce": "se.conv_reduce", "_se_expand": "se.conv_expand"}
EXPANDING = {
    **SQUEEZE,
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
DEPTHWISE = {**SQUEEZE, "_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
WITHOUT_RELU = (
    "The children of lightly's ResNetGenerator, put into a Sequential, have no ReLU behind the first batch norm, and "
    "this module has: encoder.relu = torch.nn.Identity() makes the features the same"
)
PADDED_BY_TWO = (
    "solo-learn's ResNets for CIFAR pad the first convolution by 2, and this module by 1: encoder.conv1.padding = "
    "(2, 2) makes the features the same"
)


@dataclass(frozen=True)
class Layout:
    """A file's tensors under the names of our modules; ``name`` describes its own names, empty if equal."""

    name: str
    table: Mapping[str, Tensor]
    notes: tuple[str, ...] = ()
    library: str = "torchvision"


def layouts(table: Mapping[str, Tensor]) -> Iterator[Layout]:
    """The table as it is, and again with torchvision's or timm's names if it has those of another project.

    >>> import torch
    >>> file = {"backbone.0.weight": torch.zeros(1)} | {f"backbone.{i}.0.conv1.weight": torch.zeros(1) for i in (4, 5, 6, 7)}
    >>> [list(layout.table)[:2] for layout in layouts(file)]
    [['backbone.0.weight', 'backbone.4.0.conv1.weight'], ['backbone.conv1.weight', 'backbone.layer1.0.conv1.weight']]
    """  # noqa: E501
    yield Layout("", table)
    names, notes = _rename_children(table)
    changes = ["a Sequential's numbers"] if names != list(table) else []
    plain = [SHORTCUT.sub(r"\1.downsample.", name) for name in names]
    changes += ["shortcut"] if plain != names else []
    if changes:
        yield Layout(" and ".join(changes), dict(zip(plain, table.values(), strict=True)), notes)
    efficient = _rename_efficientnet(table)
    if efficient is not None:
        yield Layout("an EfficientNet's numbers", efficient, library="timm")


def _rename_efficientnet(table: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """lukemelas' EfficientNet by timm's names; None if the table is none."""
    places = _efficientnet_places(table)
    if not places:
        return None
    renamed = {}
    for name, tensor in table.items():
        match = BLOCK.fullmatch(name)
        if match is None or (match[1], int(match[2])) not in places:
            first, part = next(((n, p) for n, p in WHOLE.items() if f".{n}." in f".{name}"), ("", ""))
            renamed[name.replace(f"{first}.", f"{part}.", 1) if first else name] = tensor
            continue
        before, number, part, rest = match[1], int(match[2]), match[3], match[4]
        expands = f"{before}_blocks.{number}._expand_conv.weight" in table
        part = (EXPANDING if expands else DEPTHWISE).get(part, part)
        stage, place = places[before, number]
        renamed[f"{before}blocks.{stage}.{place}.{part}.{rest}"] = tensor
    return renamed


def _efficientnet_places(table: Mapping[str, Tensor]) -> dict[tuple[str, int], tuple[int, int]]:
    """Stage and place of each block of lukemelas' numbers, by what stands before them."""
    kinds: dict[str, dict[int, tuple[int, int]]] = {}
    for name, tensor in table.items():
        match = BLOCK.fullmatch(name)
        if match is None or match[3] != "_project_conv" or match[4] != "weight" or tensor.ndim != 4:
            continue
        before, number = match[1], int(match[2])
        depthwise = table.get(f"{before}_blocks.{number}._depthwise_conv.weight")
        if depthwise is not None and depthwise.ndim == 4:
            kinds.setdefault(before, {})[number] = tensor.shape[0], depthwise.shape[-1]
    places = {}
    for before, blocks in kinds.items():
        stage = place = -1
        last: tuple[int, int] | None = None
        for number, kind in sorted(blocks.items()):
            stage, place = (stage, place + 1) if kind == last else (stage + 1, 0)
            places[before, number], last = (stage, place), kind
    return places


def _rename_children(table: Mapping[str, Tensor]) -> tuple[list[str], tuple[str, ...]]:
    """The names, with those of a Sequential of a ResNet's children replaced, and notes on the network.

    Four stages in a row are a ResNet; before them stand convolution, norm, and in torchvision's ReLU and max-pool,
    which have no tensors.
    """
    places: dict[str, set[int]] = {}
    for name in table:
        match = STAGE.fullmatch(name)
        if match:
            places.setdefault(match[1], set()).add(int(match[2]))
    firsts = {
        before: min(numbers)
        for before, numbers in places.items()
        if len(numbers) == STAGES and max(numbers) - min(numbers) == STAGES - 1 and min(numbers) >= 2
    }
    names = []
    for name in table:
        before = next((b for b in firsts if name.startswith(b) and _place(name, b) is not None), None)
        names.append(name if before is None else _rename(name, before, firsts[before]))
    return names, (WITHOUT_RELU,) if 2 in firsts.values() else ()


def _place(name: str, before: str) -> int | None:
    """The number behind ``before``, if there is one."""
    number = name.removeprefix(before).partition(".")[0]
    return int(number) if number.isdecimal() else None


def _rename(name: str, before: str, first: int) -> str:
    place, (_, _, rest) = _place(name, before), name.removeprefix(before).partition(".")
    assert place is not None
    part = {0: "conv1", 1: "bn1"}.get(place, f"layer{place - first + 1}" if first <= place < first + STAGES else "")
    return f"{before}{part}.{rest}" if part else name


def differences(
    content: Mapping[str, Any], table: Mapping[str, Tensor], prefix: str, targets: Mapping[str, Tensor]
) -> list[str]:
    """Describe differences of the networks that the names do not show, such as another stem.

    Args:
        content: The whole file.
        table: The dictionary with the encoder.
        prefix: The prefix of the encoder's names in it.
        targets: The module's tensors.

    Returns:
        A sentence for each difference.
    """
    theirs, mine = table.get(f"{prefix}conv1.weight"), targets.get("conv1.weight")
    if theirs is None or mine is None or theirs.ndim != 4 or mine.ndim != 4:
        return []
    if theirs.shape[2:] != mine.shape[2:]:
        sides = ["×".join(map(str, weight.shape[2:])) for weight in (theirs, mine)]
        stem = {"3×3": "small", "7×7": "large"}.get(sides[0])
        cure = f": make the encoder with stem={stem!r}" if stem else ""
        return [f"The file's first convolution is {sides[0]}, the module's {sides[1]}{cure}"]
    lightning = any(str(key).endswith("lightning_version") for key in content)
    if lightning and "classifier.weight" in table and tuple(theirs.shape[2:]) == (3, 3):
        return [PADDED_BY_TWO]
    return []
