"""The index of faiss finds what kontrast finds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from kontrast.evaluate import nearest
from kontrast.explore import faiss_index


def test_the_index_has_the_same_neighbours(tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    x = 3 * torch.randn(100, 12, generator=torch.Generator().manual_seed(0))
    file = faiss_index.check(tmp_path / "photos.faiss")
    faiss_index.write(x, file)
    cosines, rows = faiss.read_index(str(file)).search(torch.nn.functional.normalize(x[:5]).numpy(), 4)
    ours = nearest(x[:5], x, 4)
    assert torch.equal(torch.from_numpy(rows), ours[1])
    assert torch.allclose(torch.from_numpy(cosines), ours[0], atol=1e-6)


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="must be in a folder that exists"):
        faiss_index.check(tmp_path / "none" / "photos.faiss")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install kontrast\[index\]"):
        faiss_index.check(tmp_path / "photos.faiss")
