"""Time and peak memory of every loss, forward and backward, beside its peers and its limit.

    python benchmarks/losses.py            the whole table (about fifteen minutes on two cores)
    python benchmarks/losses.py --quick    a small form (under a minute)

The limit is what no loss can do without: the two plain matrix products S = Z·Zᵀ and S·Z, as one writes them. "two
products, S reused" writes S into memory allocated once, which is faster still. Rows are float32 of D = 128 as they
come from an encoder (the losses normalise them), labels are of 10 classes, and the gradient goes to the rows; for
InfoNCE the keys are detached unless said otherwise. NT-Xent's N counts the rows of both views.

Times are medians of rounds in which all calls of one size take turns; a turn is three calls in a row, of which the
fastest counts. A call of more than two seconds is made once only, so it also pays for its first touch of memory: from
N = 8,192 on that is so for some of the dense twins and peers, and flatters the ratios to them. Memory is the rise of
the process's peak during one call, each in a fresh process; dense twins and peers are left out beyond N = 8,192.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast import losses
from kontrast.losses import hard_contrastive, info_nce, nt_xent, ressl, sce, supcon, tcl
from measure import (
    Call,
    Sections,
    in_fresh_process,
    markdown,
    milliseconds,
    number,
    print_peak,
    setting,
    write_page,
)

DIM, CLASSES, QUEUE, SEED = 128, 10, 16384, 0
OURS = "kontrast "


def rows(n: int, *, seed: int = SEED) -> Tensor:
    return torch.randn(n, DIM, generator=torch.Generator().manual_seed(seed))


def step(function: Callable[..., Tensor], *learned: Tensor) -> Call:
    """Forward and backward; gradients start anew each time."""

    def call() -> None:
        for x in learned:
            x.grad = None
        function(*learned).backward()  # type: ignore[no-untyped-call]

    return call


def unit(x: Tensor) -> Tensor:
    return F.normalize(x, dim=-1)


def peer(module: str, name: str, **options: Any) -> Callable[..., Tensor] | None:
    """A neighbour's loss, or None where it is not installed; what it prints or warns of on import is kept quiet."""
    if importlib.util.find_spec(module.split(".")[0]) is None:
        return None
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return getattr(importlib.import_module(module), name)(**options)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------- what is measured


def products(n: int) -> dict[str, Call]:
    z = unit(rows(n))
    out: list[Tensor] = []

    def reused() -> None:
        if not out:
            out.append(torch.empty(n, n))
        torch.mm(torch.mm(z, z.T, out=out[0]), z)

    return {"two products": lambda: (z @ z.T) @ z, "two products, S reused": reused}


def square(n: int) -> dict[str, Call]:
    """Losses of n rows against each other."""
    z = rows(n).requires_grad_()
    labels = torch.arange(n) % CLASSES
    views = [rows(n // 2, seed=s).requires_grad_() for s in (1, 2)]
    keys, learned_keys = rows(n, seed=3), rows(n, seed=3).requires_grad_()
    pml = peer("pytorch_metric_learning.losses", "SupConLoss", temperature=0.1)
    ntx = peer("lightly.loss", "NTXentLoss", temperature=0.1)
    calls: dict[str, Callable[[], Call] | None] = {
        OURS + "SupCon": lambda: step(lambda z: losses.SupConLoss()(z, labels), z),
        "dense SupCon": lambda: step(lambda z: supcon.reference(unit(z), labels, temperature=0.1).mean(), z),
        "pytorch-metric-learning SupCon": None if pml is None else lambda: step(lambda z: pml(z, labels), z),
        OURS + "TCL": lambda: step(lambda z: losses.TCLLoss()(z, labels), z),
        "dense TCL": lambda: step(
            lambda z: tcl.reference(unit(z), labels, temperature=0.1, k1=5000.0, k2=1.0).mean(), z
        ),
        OURS + "NT-Xent": lambda: step(losses.NTXentLoss(), *views),
        "dense NT-Xent": lambda: step(lambda a, b: nt_xent.reference(unit(a), unit(b), temperature=0.1).mean(), *views),
        "lightly NT-Xent": None if ntx is None else lambda: step(ntx, *views),
        OURS + "InfoNCE": lambda: step(lambda z: losses.InfoNCELoss()(z, keys), z),
        OURS + "InfoNCE, keys learned": lambda: step(losses.InfoNCELoss(), z, learned_keys),
        "dense InfoNCE": lambda: step(lambda z: info_nce.reference(unit(z), unit(keys), temperature=0.1).mean(), z),
    }
    return {name: make() for name, make in calls.items() if make is not None}


def queue(n: int) -> dict[str, Call]:
    """Losses of n rows against a queue of 16,384."""
    x, t, q = rows(n).requires_grad_(), unit(rows(n, seed=1)), unit(rows(QUEUE, seed=2))
    z = unit(x.detach())
    return {
        "two products": lambda: (z @ q.T) @ q,
        "three products": lambda: ((z @ q.T) @ q, t @ q.T),
        OURS + "InfoNCE": step(lambda x: losses.InfoNCELoss()(x, t, q), x),
        OURS + "hard, 4,095 nearest": step(lambda x: losses.HardContrastiveLoss()(x, t, q), x),
        "dense hard": step(
            lambda x: hard_contrastive.reference(unit(x), t, q, temperature=0.1, hard_negatives=4095).mean(), x
        ),
        OURS + "SCE": step(lambda x: losses.SCELoss()(x, t, q), x),
        "dense SCE": step(
            lambda x: sce.reference(
                unit(x), t, q, temperature=0.1, target_temperature=0.05, contrastive_weight=0.5
            ).mean(),
            x,
        ),
        OURS + "ReSSL": step(lambda x: losses.ReSSLLoss()(x, t, q), x),
        "dense ReSSL": step(
            lambda x: ressl.reference(unit(x), t, q, temperature=0.1, target_temperature=0.04).mean(), x
        ),
    }


TABLES: dict[str, Callable[[int], dict[str, Call]]] = {
    "square": lambda n: products(n) | square(n),
    "queue": queue,
}

# Ratios to reach: (table, call, compared with) → the largest allowed, by N; below 1 means "so many times faster".
Goal = tuple[str, str, str, dict[int, float]]
GOALS: list[Goal] = [
    *(
        ("square", OURS + name, "two products", {512: 2.0, 2048: 1.2, 4096: 1.0, 8192: 1.0})
        for name in ("SupCon", "NT-Xent", "InfoNCE")
    ),
    ("square", OURS + "InfoNCE, keys learned", "two products", {4096: 1.4, 8192: 1.4}),
    ("square", OURS + "TCL", OURS + "SupCon", {2048: 1.3, 4096: 1.3, 8192: 1.3}),
    ("square", OURS + "SupCon", "dense SupCon", {8192: 1 / 10}),
    ("square", OURS + "SupCon", "pytorch-metric-learning SupCon", {8192: 1 / 20}),
    *(("queue", OURS + name, "three products", {256: 1.3, 1024: 1.3}) for name in ("SCE", "ReSSL")),
    ("queue", OURS + "hard, 4,095 nearest", "two products", {256: 4.0, 1024: 4.0}),
]


# --------------------------------------------------------------------------------------------------- the tables


def times_table(title: str, times: dict[int, dict[str, float]]) -> str:
    limit = "two products"
    names = list(next(iter(times.values())))
    cells = [
        [name, *(f"{number(t[name])} ({number(t[name] / t[limit], 2)})" if name in t else "–" for t in times.values())]
        for name in names
    ]
    return f"**{title}**: ms (times “{limit}”)\n\n" + markdown(["", *(f"N = {n:,}" for n in times)], cells)


def memory_table(table: str, title: str, sizes: list[int]) -> str:
    """Peers and dense twins are left out beyond N = 8,192, where each of them takes long."""
    names = [name for name in TABLES[table](64) if "products" not in name]
    cells = [
        [name, *(number(_peak(table, name, n) if n <= 8192 or name.startswith(OURS) else None) for n in sizes)]
        for name in names
    ]
    header = ["", *(f"N = {n:,}" for n in sizes)]
    return f"**Peak memory, {title}**: MB that one call adds\n\n" + markdown(header, cells)


def _peak(table: str, name: str, n: int) -> float | None:
    return in_fresh_process(__file__, ["--peak", table, name, n])


def goals_table(results: dict[str, dict[int, dict[str, float]]]) -> str:
    cells = []
    for table, name, other, wanted in GOALS:
        for n, largest in wanted.items():
            times = results.get(table, {}).get(n, {})
            if name in times and other in times:
                ratio = times[name] / times[other]
                faster = largest < 1 and "products" not in other
                goal = f"≥ {1 / largest:.0f} × faster" if faster else f"≤ {largest:g} ×"
                seen = f"{1 / ratio:.1f} × faster" if faster else f"{ratio:.2f} ×"
                cells.append([f"{name} against {other}", f"{n:,}", goal, seen, "yes" if ratio <= largest else "no"])
    return "**Goals**\n\n" + markdown(["", "N", "goal", "measured", "reached"], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/losses.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--peak", nargs=3, metavar=("TABLE", "CALL", "N"), help="print one call's peak memory and stop")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.peak:
        print_peak(TABLES, *arguments.peak)
        return

    sections = Sections()
    show = sections.show
    show(f"{setting()}, D = {DIM}, float32, forward and backward.")
    rounds = arguments.rounds or (5 if arguments.quick else 9)
    sizes = [512, 2048] if arguments.quick else [512, 1024, 2048, 4096, 8192, 16384]
    batches, largest = ([256], 2048) if arguments.quick else ([256, 1024], 65536)
    results = {"square": {n: milliseconds(TABLES["square"](n), rounds=rounds) for n in sizes}}
    show(times_table("Rows against each other", results["square"]))
    results["queue"] = {n: milliseconds(TABLES["queue"](n), rounds=rounds) for n in batches}
    show(times_table("Rows against a queue of 16,384", results["queue"]))
    if not arguments.quick:
        seconds = milliseconds({"": square(largest)[OURS + "SupCon"]}, rounds=1)[""] / 1e3
        show(f"kontrast SupCon at N = {largest:,}: {seconds:.1f} s.")
    show(memory_table("square", "rows against each other", sorted({2048, *sizes[4:5], largest})))
    if not arguments.quick:
        show(memory_table("queue", "rows against a queue of 16,384", batches))
    show(goals_table(results))
    if arguments.write:
        write_page("losses", __doc__, sections)


if __name__ == "__main__":
    main()
