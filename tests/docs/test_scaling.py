"""The cost model of docs/scaling.py is what the engine does: flops, bytes moved and memory, by counting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from kontrast import engine, losses, methods, models
from kontrast.train.gradients import backward
from tests.docs.loading import script
from tests.processes import run_on_ranks

scaling = script("scaling")
D, QUEUE, CLASSES, NEAREST = 24, 700, 10, 50
Call = Callable[[], Tensor]


def rows(n: int, seed: int, *, learned: bool = False, dim: int = D) -> Tensor:
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed)).requires_grad_(learned)


def calls(n: int, *, queue: Tensor | None, seed: int = 0, dim: int = D) -> dict[str, Call]:
    """Every loss the model knows on n samples, two views of them where views are anchors."""
    views, labels = rows(2 * n, seed, learned=True, dim=dim).view(n, 2, dim), torch.arange(n) % CLASSES
    query, key = rows(n, seed + 1, learned=True, dim=dim), rows(n, seed + 2, dim=dim)
    flat, twice = views.flatten(0, 1), labels.repeat_interleave(2)
    learned = rows(n, seed + 3, learned=True, dim=dim)
    classifiers = losses.CrossEntropyLoss(CLASSES, dim), losses.SimplexCrossEntropyLoss(CLASSES, dim)
    return {
        "supcon": lambda: losses.SupConLoss()(views, labels),
        "tcl": lambda: losses.TCLLoss()(views, labels),
        "nt_xent": lambda: losses.NTXentLoss()(*views.unbind(1)),
        "info_nce": lambda: losses.InfoNCELoss()(query, key, queue),
        "info_nce, keys learned": lambda: losses.InfoNCELoss()(query, learned),
        "hard_contrastive": lambda: losses.HardContrastiveLoss(hard_negatives=NEAREST)(query, key, queue),
        "simple_contrastive": lambda: losses.SimpleContrastiveLoss()(query, key, queue),
        "ressl": lambda: losses.ReSSLLoss()(query, key, queue),
        "sce": lambda: losses.SCELoss()(query, key, queue),
        "cross_entropy": lambda: classifiers[0](flat, twice),
        "simplex_cross_entropy": lambda: classifiers[1](flat, twice),
    }


def cost(loss: str, n: int, *, queue: int, ranks: int = 1, dim: int = D) -> Any:
    queue = 0 if loss == "info_nce, keys learned" else queue
    return scaling.step_cost(loss, batch=n, dim=dim, queue=queue, classes=CLASSES, hard_negatives=NEAREST, ranks=ranks)


def flops(call: Callable[[], object]) -> int:
    """torch's own count; products into a sum (addmm_) are as many as without."""

    def product(_: list[int], a: list[int], b: list[int], *args: object, **options: object) -> int:
        return 2 * a[0] * a[1] * b[1]

    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: product}) as counter:
        call()
    return int(counter.get_total_flops())


def peak(call: Callable[[], object]) -> int:
    """The most bytes alive at once of what a call allocates, by torch's allocator."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        call()
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def test_every_loss_has_a_cost() -> None:
    assert {name.partition(",")[0].replace("_", "-") for name in scaling.KINDS} == set(losses.FAMILY)


@pytest.mark.parametrize("queue", [0, QUEUE])
@pytest.mark.parametrize("loss", scaling.KINDS)
def test_flops_are_those_torch_counts(loss: str, queue: int) -> None:
    """Exactly, but for the simple loss, which makes sums and no product of matrices."""
    call = calls(600, queue=rows(queue, 9) if queue else None)[loss]
    assert flops(lambda: call().backward()) == cost(loss, 600, queue=queue).flops


class Exponentials(TorchDispatchMode):
    """Counts the numbers that are raised to a power."""

    count = 0

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if call.overloadpacket in (torch.ops.aten.exp2, torch.ops.aten.exp2_, torch.ops.aten.exp):
            self.count += args[0].numel()
        return call(*args, **(kwargs or {}))


@pytest.mark.parametrize("queue", [0, QUEUE])
@pytest.mark.parametrize("loss", [loss for loss in scaling.KINDS if loss != "tcl"])
def test_exponentials_are_those_taken(loss: str, queue: int) -> None:
    """And one or two more an anchor: its positive's, beside the blocks."""
    n = 600
    call = calls(n, queue=rows(queue, 9) if queue else None)[loss]
    with Exponentials() as seen:
        call().backward()
    anchors = n * (2 if scaling.KINDS[loss].per_view else 1)
    assert 0 <= seen.count - cost(loss, n, queue=queue).exponentials <= 2 * anchors


def test_blocks_that_do_not_fit_are_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = cost("supcon", 600, queue=0)
    monkeypatch.setattr(engine, "KEEP_BYTES", 0)
    again = cost("supcon", 600, queue=0)
    assert again.flops == kept.flops + 2 * D * kept.exponentials
    call = calls(600, queue=None)["supcon"]
    assert flops(lambda: call().backward()) == again.flops


@pytest.mark.parametrize("queue", [0, QUEUE])
@pytest.mark.parametrize("loss", scaling.KINDS)
def test_memory_is_what_torch_allocates(loss: str, queue: int) -> None:
    """To one tensor of the anchors, since the moments with blocks and without have not the same number of them, and a
    few numbers a row (norms, normalisers, indices: 100 bytes)."""
    n, dim = 600, 128
    anchors = n * (2 if scaling.KINDS[loss].per_view else 1)
    call = calls(n, queue=rows(queue, 9, dim=dim) if queue else None, dim=dim)[loss]
    expected = cost(loss, n, queue=queue, dim=dim).memory
    assert abs(peak(lambda: call().backward()) - expected) <= anchors * (dim * 4 + 100)


def test_memory_is_near_what_was_recorded() -> None:
    """The recorded peaks are of the process: memory freed before can serve again, so small calls may show less (a
    third), and torch's threads and rounding to pages add a little (a tenth)."""
    peaks = scaling.recorded()
    assert len(peaks) == 15
    for (loss, n), seen in peaks.items():
        assert 0.67 <= seen / scaling.modelled(loss, n) <= 1.1, (loss, n)


class Counted:
    """Bytes of the collectives called while it is active."""

    def __init__(self) -> None:
        self.gathered = self.reduced = 0

    def __enter__(self) -> Counted:
        self.before = dist.all_gather, dist.all_reduce

        def gather(parts: list[Tensor], mine: Tensor, *args: Any, **options: Any) -> Any:
            self.gathered += len(parts) * mine.numel() * mine.element_size()
            return self.before[0](parts, mine, *args, **options)

        def reduce(x: Tensor, *args: Any, **options: Any) -> Any:
            self.reduced += x.numel() * x.element_size()
            return self.before[1](x, *args, **options)

        dist.all_gather, dist.all_reduce = gather, reduce
        return self

    def __exit__(self, *_: object) -> None:
        dist.all_gather, dist.all_reduce = self.before


def _on_rank(rank: int, world: int) -> None:
    n = 40
    for queue in (0, 30):
        for loss, call in calls(n, queue=rows(queue, 9) if queue else None, seed=10 * rank).items():
            with Counted() as seen:
                flop = flops(lambda call=call: call().backward())  # type: ignore[misc]
            expected = cost(loss, world * n, queue=queue, ranks=world)
            assert (seen.gathered, seen.reduced) == (expected.gathered, expected.reduced), (loss, queue)
            assert flop == expected.flops, (loss, queue)
    for loss, call in calls(200, queue=None, seed=10 * rank, dim=128).items():
        # The least of six: what gloo's threads free late is counted with the next. To one tensor of rows, as above.
        memory = min(peak(lambda call=call: call().backward()) for _ in range(6))  # type: ignore[misc]
        anchors = world * 200 * (2 if scaling.KINDS[loss].per_view else 1)
        expected = cost(loss, world * 200, queue=0, ranks=world, dim=128).memory
        assert abs(memory - expected) <= anchors * (128 * 4 + 100), loss
    _momentum(rank, world)


def _momentum(rank: int, world: int) -> None:
    """MoCo without batch norm: nothing but the views, the keys and the queue's keys is gathered."""
    n, pixels, dim = 6, 20, 8
    encoder = models.encoder("mlp", in_features=pixels, features=12, batch_norm=False, seed=0)
    method = methods.method("moco", encoder, models.head("wang-liu", in_dim=12, out=dim), queue=16, key_parts=1)
    batch = methods.ViewBatch(rows(2 * n, rank, dim=pixels).view(n, 2, pixels), seed=1)
    with Counted() as seen:
        method.step(batch)["loss"].backward()
        method.after_step()
    loss = scaling.step_cost("info_nce", batch=world * n, dim=dim, queue=16, ranks=world)
    assert seen.gathered == loss.gathered + scaling.momentum_traffic(
        batch=world * n, dim=dim, pixels=pixels, ranks=world
    )


@pytest.mark.parametrize("world", [2])
def test_bytes_moved_are_those_of_real_processes(world: int, tmp_path: Path) -> None:
    run_on_ranks(_on_rank, world, tmp_path)


@pytest.mark.parametrize(("name", "target_views"), [("supcon", 0), ("sce", 1)])
def test_micro_batches_cost_one_forward_pass_more(name: str, target_views: int) -> None:
    """Exactly one: the difference is the forward pass of what learns. The backward pass is at most twice the forward
    one, less for the first layer, whose input needs no gradient."""
    encoder = models.encoder("mlp", in_features=32, hidden=32, features=32, seed=0)
    method = methods.method(name, encoder, models.head("tcl", in_dim=32, out=16, seed=0))
    batch = methods.ViewBatch(rows(2 * 64, 0, dim=32).view(64, 2, 32), torch.arange(64) % 4)
    images = batch.views[:, 1] if target_views else batch.views.flatten(0, 1)
    forward = flops(lambda: method.online(images))
    whole, cached = (flops(lambda pieces=pieces: backward(method, batch, pieces=pieces)) for pieces in (1, 4))
    assert cached - whole == forward
    views = 1 if target_views else 2
    bound = scaling.encoder_flops(forward / len(images), batch=64, views=views, target_views=target_views)
    loss = scaling.step_cost(name, batch=64, dim=16, views=2, queue=4096 if target_views else 0).flops
    assert 0.8 * bound <= whole - loss <= bound


def test_the_page_has_the_tables_of_the_script() -> None:
    page = scaling.PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- table: ") == len(scaling.TABLES)
    assert scaling.filled(page) == page, "run python docs/scaling.py"


@pytest.mark.parametrize("loss", ["supcon", "tcl", "nt_xent"])
def test_a_batch_against_itself_takes_three_products_from_some_thousand_rows_and_one_block_four(loss: str) -> None:
    """In units of A²·D, as the page's table has it: within an eighth, (A + b)/A of the triangle, b = 1,024."""

    def products(rows: int) -> float:
        return float(scaling.step_cost(loss, batch=rows // 2, dim=64).flops / (rows * rows * 64))

    assert products(256) == 4
    assert 3 < products(8192) <= 3 + 1024 / 8192
    assert 4 < products(16384) <= 4 + 2 * 1024 / 16384
    page = scaling.PAGE.read_text(encoding="utf-8")
    assert "3·A²·D from some thousand rows; one block: 4·A²·D; beyond A = 8,192 rows 4·A²·D" in page


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"batch": 0}, "batch=0: must be a whole number of at least 1"),
        ({"dim": 0}, "dim=0: must be a whole number of at least 1"),
        ({"views": 0}, "views=0: must be a whole number of at least 1"),
        ({"ranks": 0}, "ranks=0: must be a whole number of at least 1"),
        ({"queue": -1}, "queue=-1: must be a whole number of at least 0"),
        ({"batch": 8.5}, "batch=8.5: must be a whole number of at least 1"),
        ({}, "classes is 0, and cross_entropy compares every row with each class; give how many"),
    ],
)
def test_sizes_that_are_none_are_errors(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        scaling.step_cost("cross_entropy", **{"batch": 8, "dim": 4, **given})


def test_an_unknown_loss_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no cost for a loss 'supcn'; there are supcon, tcl"):
        scaling.step_cost("supcn", batch=8, dim=4)
