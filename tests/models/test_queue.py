from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from kontrast import models


def keys(n: int, seed: int, dim: int = 4) -> torch.Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("sizes", [[3, 3, 3], [2, 5, 1, 4], [7], [8, 1], [20, 3], [7, 7], [0, 3], [15, 0, 29, 6]])
def test_as_if_row_by_row(sizes: list[int]) -> None:
    """Literal: one row after another into the slot after the last, for batches below, at and above the length."""
    queue, slot = models.Queue(7, 4), 0
    expected = queue.read()
    for seed, n in enumerate(sizes):
        batch = keys(n, seed)
        queue.enqueue(batch)
        for row in F.normalize(batch, dim=1):
            expected[slot] = row
            slot = (slot + 1) % 7
        assert torch.equal(queue.rows, expected)
        assert int(queue.pointer) == slot


def test_random_unit_rows_at_first_from_a_generator() -> None:
    """Unit up to the rounding of one division in float32."""
    a, b = models.Queue(50, 8), models.Queue(50, 8)
    assert torch.equal(a.rows, b.rows)
    torch.testing.assert_close(a.rows.norm(dim=1), torch.ones(50))
    other = models.Queue(50, 8, generator=torch.Generator().manual_seed(1))
    assert not torch.equal(a.rows, other.rows)
    assert a.rows.unique(dim=0).shape == (50, 8)


def test_a_saved_queue_goes_on_where_it_was() -> None:
    whole, resumed = models.Queue(7, 4), models.Queue(7, 4, generator=torch.Generator().manual_seed(9))
    whole.enqueue(keys(5, 0))
    assert set(whole.state_dict()) == {"rows", "pointer"}
    resumed.load_state_dict(whole.state_dict())
    for queue in (whole, resumed):
        queue.enqueue(keys(4, 1))
    assert torch.equal(whole.rows, resumed.rows)
    assert torch.equal(whole.pointer, resumed.pointer)


def test_what_was_read_does_not_move_and_keys_take_no_gradient() -> None:
    queue = models.Queue(7, 4)
    before = queue.read()
    copy = before.clone()
    queue.enqueue(keys(3, 0).requires_grad_())
    assert torch.equal(before, copy)
    assert not torch.equal(queue.rows, before)
    assert not queue.rows.requires_grad


def test_writing_before_backward_is_noticed() -> None:
    """Why `read` exists: a loss that holds the rows themselves cannot be differentiated once they have changed."""
    queue, x = models.Queue(7, 4), keys(3, 1).requires_grad_()
    value = (x @ queue.rows.T).square().sum()
    queue.enqueue(keys(2, 2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()
    value = (x @ queue.read().T).square().sum()
    queue.enqueue(keys(2, 2))
    value.backward()
    assert x.grad is not None


def test_rows_of_another_kind() -> None:
    queue = models.Queue(3, 4, normalize=False)
    queue.enqueue(keys(3, 0).double() * 5)
    assert queue.rows.dtype == torch.float32
    assert torch.equal(queue.rows, (keys(3, 0).double() * 5).float())


def test_rows_of_any_length_are_stored_with_length_one() -> None:
    """Squares of the first overflow, of the second underflow; ordinary ones are what F.normalize makes, to the bit."""
    ordinary = keys(5, 3)
    queue = models.Queue(5, 4)
    for scale in (1e25, 1e-25, 1e-13):
        queue.enqueue(ordinary * scale)
        torch.testing.assert_close(queue.rows, F.normalize(ordinary, dim=1))
    queue.enqueue(ordinary)
    assert torch.equal(queue.rows, F.normalize(ordinary, dim=1))
    queue.enqueue(torch.zeros(5, 4))
    assert torch.equal(queue.rows, torch.zeros(5, 4))


def test_numbers_of_numpy_are_numbers() -> None:
    queue = models.Queue(np.int64(10), np.int32(4))
    assert queue.rows.shape == (10, 4)
    with pytest.raises(ValueError, match=r"length=(np\.float64\()?10\.0\)?: must be a whole number of at least 1"):
        models.Queue(np.float64(10), 4)


def test_errors_speak() -> None:
    with pytest.raises(ValueError, match=r"keys has shape \[3, 5\]: must be \[N, 4\]"):
        models.Queue(7, 4).enqueue(torch.zeros(3, 5))
    with pytest.raises(ValueError, match="length=0: must be a whole number of at least 1"):
        models.Queue(0, 4)
