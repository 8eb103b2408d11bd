"""A catalogue checks what it is given, and names rows and classes as text of one line."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kontrast.explore import Catalogue
from kontrast.explore.catalogue import readable


def test_names() -> None:
    labels = torch.tensor([0, 1, -1, 1])
    rows = Catalogue(torch.eye(4), ["train", "train", "test", "test"], labels=labels, class_names=["cat", "a\nb"])
    assert [rows.name(i) for i in range(4)] == ["train 0", "train 1", "test 0", "test 1"]
    assert [rows.class_name(rows.label(i)) for i in range(4)] == ["cat", "a\\nb", "", "a\\nb"]
    assert rows.counts == {"train": 2, "test": 2}
    assert rows.num_classes == 2
    assert Catalogue(torch.eye(3), ["train"] * 3).num_classes == 0
    assert readable("\x1b[31m.png\udcff") == "\\x1b[31m.png\\udcff"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": torch.ones(3, 2, dtype=torch.int64)}, "must be floats"),
        ({"features": torch.ones(2, 2), "splits": ["train"] * 2}, "must be 3 or more"),
        ({"features": torch.tensor([[1.0], [2.0], [torch.nan]])}, "row 2 of the features is not finite"),
        ({"splits": ["train"]}, "splits has 1 entries: must have one for each of 3 rows"),
        ({"labels": torch.tensor([0, 1, 5]), "class_names": ["a", "b"]}, "class_names has 2, and a label is 5"),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Catalogue(**{"features": torch.eye(3), "splits": ["train"] * 3, **changes})
