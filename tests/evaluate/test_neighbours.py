"""The tiled search against a full sort, whatever the blocks; ties by the order of keys."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.neighbors import NearestNeighbors

from kontrast.evaluate import neighbours
from kontrast.evaluate.neighbours import nearest, nearest_others, pack, unpack_index


def drawn(rows: int, dim: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("queries", "keys", "k"), [(1, 1, 1), (3, 5, 5), (40, 700, 20), (33, 513, 200), (7, 300, 299)])
@pytest.mark.parametrize("block", [(2048, 4096), (16, 64), (8, 16)])
def test_nearest_is_a_full_sort(
    queries: int, keys: int, k: int, block: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "QUERIES", block[0])
    monkeypatch.setattr(neighbours, "KEYS", block[1])
    q, c = 3 * drawn(queries, 9, 0), 5 * drawn(keys, 9, 1)
    similarity, index = nearest(q, c, k)
    exact = F.normalize(q.double()) @ F.normalize(c.double()).T
    expected = exact.sort(1, descending=True).values[:, :k]
    # Unit rows and products of 9 terms in float32: a few roundings of 6e-8.
    assert torch.allclose(similarity.double(), expected, atol=1e-6, rtol=0)
    assert torch.allclose(exact.gather(1, index), expected, atol=1e-6, rtol=0)
    assert all(len(set(row)) == k for row in index.tolist()), "no key twice"


def test_arrays_do_as_well() -> None:
    q, c = drawn(5, 4, 0), drawn(9, 4, 1)
    wanted = nearest(q, c, 3)
    fixed = c.numpy().copy()
    fixed.flags.writeable = False  # what a memory-mapped file is
    for query, keys in ((q.numpy(), fixed), (q.double().numpy(), c), (q.tolist(), c.numpy()[::-1][::-1])):
        found = nearest(query, keys, 3)
        assert torch.equal(found[0], wanted[0])
        assert torch.equal(found[1], wanted[1])
    with pytest.raises(ValueError, match="query is list of <U1; expected a tensor or array of numbers"):
        nearest(["a"], c, 3)
    with pytest.raises(ValueError, match=r"query is \[4\] and keys \[9, 4\]"):
        nearest(q[0].numpy(), c, 3)


def test_nearest_is_scikit_learns() -> None:
    q, c = drawn(50, 16, 0), drawn(400, 16, 1)
    distance, expected = NearestNeighbors(n_neighbors=10, metric="cosine", algorithm="brute").fit(c).kneighbors(q)
    similarity, index = nearest(q, c, 10)
    assert np.array_equal(index.numpy(), expected)
    assert np.allclose(similarity.numpy(), 1 - distance, atol=1e-6)  # float32 roundings, here and there


@pytest.mark.parametrize("block", [(2048, 4096), (4, 16)])
def test_equal_cosines_keep_the_order_of_keys(block: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "QUERIES", block[0])
    monkeypatch.setattr(neighbours, "KEYS", block[1])
    keys = torch.eye(2).repeat(50, 1)  # powers of two: the same cosine to the bit in every block
    similarity, index = nearest(torch.tensor([[2.0, 0.0], [0.0, 0.5]]), keys, 60)
    assert index[0].tolist() == [*range(0, 100, 2), *range(1, 20, 2)]
    assert index[1].tolist() == [*range(1, 100, 2), *range(0, 20, 2)]
    assert similarity[0].tolist() == [1.0] * 50 + [0.0] * 10


def test_zero_rows_have_cosine_zero() -> None:
    similarity, index = nearest(torch.zeros(1, 3), torch.cat([drawn(4, 3, 0), torch.zeros(1, 3)]), 5)
    assert similarity.tolist() == [[0.0] * 5]
    assert index.tolist() == [[0, 1, 2, 3, 4]]


def test_packed_integers_sort_as_values_then_order() -> None:
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-38, -1e-38, 0.5, 0.5, -torch.inf])
    order = unpack_index(pack(values, torch.arange(9)).sort(descending=True).values).tolist()
    assert order == [2, 6, 7, 4, 0, 1, 5, 3, 8]


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"k=4: must be 1 to 3"):
        nearest(torch.ones(1, 2), torch.ones(3, 2), 4)
    with pytest.raises(ValueError, match=r"expected \[M, D\] and \[N, D\]"):
        nearest(torch.ones(1, 2), torch.ones(3, 5), 1)


def test_very_wide_rows_are_searched_in_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raw pixels of 224 × 224 are 150,528 numbers a row: 4,096 of them at once would be 2.4 GB."""
    draw = torch.Generator().manual_seed(0)
    keys, query = torch.randn(500, 40, generator=draw), torch.randn(30, 40, generator=draw)
    whole = nearest(query, keys, 90)
    blocks: list[int] = []
    real = neighbours.directions

    def counted(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        blocks.append(len(x))
        return real(x, dtype)

    monkeypatch.setattr(neighbours, "WIDEST", 40 * 64)
    monkeypatch.setattr(neighbours, "directions", counted)
    parts = nearest(query, keys, 90)
    assert max(blocks[1:]) == 64
    assert torch.equal(parts[1], whole[1])
    assert torch.allclose(parts[0], whole[0], atol=1e-6)


def test_a_row_is_not_its_own_neighbour_and_its_copies_are() -> None:
    x = drawn(60, 5, 0)
    x[[7, 9, 30]] = x[3].clone()
    similarity, rows = nearest_others(x, 4)
    assert not bool((rows == torch.arange(60)[:, None]).any())
    assert set(rows[3, :3].tolist()) == {7, 9, 30}
    unit = F.normalize(x)
    assert torch.allclose(similarity, (unit[:, None] * unit[rows]).sum(2), atol=1e-6)
    assert nearest_others(torch.ones(9, 2), 3)[1].shape == (9, 3), "of nine equal rows each has three others"
    with pytest.raises(ValueError, match="k=60: must be 1 to 59"):
        nearest_others(x, 60)
