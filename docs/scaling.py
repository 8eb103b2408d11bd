"""What a step of a loss costs one rank: multiplications, bytes moved, memory. Counted off the engine, not fitted.

    python docs/scaling.py        writes the tables of docs/scaling.md anew, between their marks

Anchors are A rows in all, n = A/R of them on each of R ranks, against C candidates of D numbers:

    (1)  one product   2·n·C·D flop; a loss takes 2 (logits, gradient of the anchors), 3 (of the candidates too) or 4
    (2)  a batch against itself in one process, in blocks of side b: logits on or above the diagonal alone, about
         A·(A + b)/2 of them, or all A² where there is one block, and both halves of the gradient from the same block:
         1.5 products (one block: 2), or 2 where the blocks do not fit `engine.KEEP_BYTES` and are made twice
    (3)  several ranks: the candidates are gathered (A·D numbers), their gradient is summed over the ranks (A·D numbers)
    (4)  memory: so many tensors of rows, a few numbers a row, and the blocks; never n·C. Where the blocks are made
         twice, the peak comes later, when more tensors of rows are alive
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch

from kontrast import engine
from kontrast.checks import whole_number

FLOAT, INTEGER = 4, 8  # bytes: losses compute in float32, labels are int64
NUMBERS = 10 * FLOAT  # bytes of norms, normalisers, indices and their like, a row
HEADER = 6 * INTEGER  # what `distributed.row_counts` gathers from each rank
PAGE = Path(__file__).with_suffix(".md")


@dataclass(frozen=True)
class Kind:
    """How a loss compares. ``own`` and ``all`` are how many tensors of rows are alive at the peak: of the anchors a
    rank has, and, with several ranks, of all that are gathered."""

    candidates: str  # "batch": the anchors themselves; "keys": those of the batch, or a queue; "classes"
    products: float  # several ranks, or against others
    own: int
    own_late: int = 0  # in place of ``own`` where blocks are not kept; 0: the same
    own_ranks: int = 0
    all: int = 0
    per_view: bool = False  # every view is an anchor
    labels: bool = False  # gathered too; 8 bytes more are summed if some anchors have no positive
    gradient: bool = False  # goes back to what was gathered


KINDS = {
    "supcon": Kind("batch", 3, own=3, own_late=4, own_ranks=4, all=3, per_view=True, labels=True, gradient=True),
    "tcl": Kind("batch", 3, own=3, own_late=4, own_ranks=4, all=3, per_view=True, labels=True, gradient=True),
    "nt_xent": Kind("batch", 3, own=2, own_late=4, own_ranks=3, all=2, per_view=True, gradient=True),
    "info_nce": Kind("keys", 2, own=4, own_ranks=3, all=2),  # keys without gradient, as MoCo's
    "info_nce, keys learned": Kind("keys", 3, own=6, own_ranks=4, all=2, gradient=True),
    "hard_contrastive": Kind("keys", 2, own=4, own_ranks=3, all=2),
    "simple_contrastive": Kind("keys", 0, own=4, own_ranks=3, all=2),
    "ressl": Kind("keys", 4, own=10, own_ranks=10, all=1),
    "sce": Kind("keys", 4, own=10, own_ranks=10, all=1),
    "cross_entropy": Kind("classes", 3, own=4, own_ranks=4, per_view=True),
    "simplex_cross_entropy": Kind("classes", 2, own=3, own_ranks=3, per_view=True),
}


@dataclass(frozen=True)
class StepCost:
    """One rank's part of a step of a loss, forward and backward. Bytes are those of the whole message."""

    flops: int
    exponentials: int  # besides TCL's second one, for each pair of positives
    gathered: int  # bytes that every rank has after gathering
    reduced: int  # bytes summed over the ranks
    memory: int  # bytes at the peak, beyond the inputs
    ranks: int

    def seconds(self, *, flops_per_second: float, bytes_per_second: float) -> float:
        """At these rates, nothing overlapping; a ring sends (R−1)/R of what is gathered, twice that of what is summed.

        >>> cost = step_cost("nt_xent", batch=32768, dim=512, ranks=8)
        >>> round(cost.seconds(flops_per_second=1e13, bytes_per_second=1e10), 3)  # rates of your own go here
        0.2
        """
        moved = (self.gathered + 2 * self.reduced) * (self.ranks - 1) / self.ranks
        return self.flops / flops_per_second + moved / bytes_per_second


def step_cost(
    loss: str,
    *,
    batch: int,
    dim: int,
    views: int = 2,
    queue: int = 0,
    classes: int = 0,
    hard_negatives: int = 4095,
    ranks: int = 1,
) -> StepCost:
    """The cost of a loss on ``batch`` samples in all, spread evenly over ``ranks``, rows of ``dim`` float32 numbers.

    ``queue`` rows take the place of the batch as candidates (InfoNCE, hard, simple, ReSSL, SCE). For logits that need
    no shift, which is τ above about 0.02; below, whole rows of logits are held at once, as the hard loss always does.

    >>> cost = step_cost("sce", batch=256, dim=128, queue=65536)
    >>> cost.flops == 4 * 2 * 256 * 65536 * 128, cost.gathered
    (True, 0)
    >>> step_cost("supcon", batch=1000, dim=64, ranks=3)
    Traceback (most recent call last):
        ...
    ValueError: batch is 1000, which 3 ranks do not share evenly; the formulas are for equal parts
    """
    if loss not in KINDS:
        raise ValueError(f"no cost for a loss {loss!r}; there are {', '.join(KINDS)}")
    sizes = {"batch": batch, "dim": dim, "views": views, "ranks": ranks, "hard_negatives": hard_negatives}
    for name, size in sizes.items():
        whole_number(name, size, least=1)
    for name, size in {"queue": queue, "classes": classes}.items():
        whole_number(name, size, least=0)
    if KINDS[loss].candidates == "classes" and not classes:
        raise ValueError(f"classes is 0, and {loss} compares every row with each class; give how many there are")
    if batch % ranks:
        raise ValueError(f"batch is {batch}, which {ranks} ranks do not share evenly; the formulas are for equal parts")
    kind = KINDS[loss]
    anchors = batch * (views if kind.per_view else 1)
    n = anchors // ranks
    fixed = classes if kind.candidates == "classes" else queue if kind.candidates == "keys" else 0
    c = fixed or anchors
    own = kind.own
    if kind.candidates == "batch" and ranks == 1:
        logits, flops, blocks, is_kept = _square(loss, n, dim)
        own = own if is_kept else kind.own_late
    else:
        chosen = min(hard_negatives, c) if loss == "hard_contrastive" else c
        logits = {0: 0, 4: 2}.get(int(kind.products), 1) * n * chosen
        flops = int(kind.products * 2 * n * c * dim)
        blocks = _blocks(kind, loss, n, c, min(hard_negatives, c))
    together = ranks > 1
    gathers = together and not fixed
    rows = (kind.own_ranks * n + kind.all * anchors) if gathers else own * n
    return StepCost(
        flops=flops,
        exponentials=logits,
        gathered=together * HEADER * ranks + gathers * anchors * (dim * FLOAT + kind.labels * INTEGER),
        reduced=together * FLOAT + (gathers and kind.gradient) * anchors * dim * FLOAT,
        memory=(rows + fixed) * dim * FLOAT + n * NUMBERS + blocks,
        ranks=ranks,
    )


def _square(loss: str, n: int, dim: int) -> tuple[int, int, int, bool]:
    """Logits, flops and bytes of blocks of a batch against itself (2), and whether all blocks are kept."""
    tile: engine.Tile = 512 if loss == "tcl" and 4096 <= n < 8192 else "auto"
    sizes = [(r.stop - r.start) * (c.stop - c.start) for r, c in engine.square_blocks(n, torch.device("cpu"), tile)]
    logits, largest = sum(sizes), max(sizes)
    kept = logits * FLOAT <= engine.KEEP_BYTES
    blocks = ((logits if kept else largest) + largest) * FLOAT
    scratch = largest * (FLOAT + 1) if loss == "tcl" else 0  # its second exponential, and which pairs are alike
    logits *= 1 if kept else 2
    return logits, 2 * dim * (logits + n * n), blocks + scratch, kept


def _blocks(kind: Kind, loss: str, n: int, c: int, nearest: int) -> int:
    """Bytes of the blocks where anchors meet candidates."""
    if kind.products == 0:
        return 0
    rows = 2 * n if kind.products == 4 else n  # the target's stand below the online ones
    if loss == "hard_contrastive":
        height = min(n, engine.strip_height(c, FLOAT, "auto"))
        return height * (c * FLOAT + nearest * (FLOAT + INTEGER))
    if loss == "tcl":  # of several ranks: whole rows, their second exponential, and which pairs are alike
        return min(n, engine.strip_height(c, FLOAT, "auto")) * c * (2 * FLOAT + 2)
    height = max(1, min(rows, engine.strip_height(c if kind.products == 3 else 1, FLOAT, "auto")))
    return height * (c if kind.products == 3 else engine.stream_width(height, c, FLOAT, "auto")) * FLOAT


def encoder_flops(forward: float, *, batch: int, views: int = 2, target_views: int = 0, cached: bool = False) -> float:
    """All ranks: ``forward`` flops an image, the backward pass taken as two of them; a target network is run forward
    only, and micro-batches (``cached``) run every view forward once more.

    >>> encoder_flops(1.0, batch=256, cached=True) / encoder_flops(1.0, batch=256)
    1.3333333333333333
    """
    return forward * batch * ((4 if cached else 3) * views + target_views)


def momentum_traffic(*, batch: int, dim: int, pixels: int, ranks: int, shuffled: bool = True) -> int:
    """Bytes that every rank has after gathering in a step of MoCo, ReSSL or SCE, besides the loss: the weak views, sent
    to other ranks for their keys and the keys back (``shuffle_keys``), and the keys for the queue."""
    if ranks == 1:
        return 0
    shuffling = HEADER * ranks + batch * (pixels + dim) * FLOAT if shuffled else 0
    return shuffling + HEADER * ranks + batch * dim * FLOAT


# ------------------------------------------------------------------------------------------- the tables of the page


def large() -> str:
    """NT-Xent on two views at D = 512."""
    lines = [
        "| batch N | ranks R | flop a rank | gathered | summed | memory a rank |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for batch in (2**15, 2**17, 2**20):
        for ranks in (8, 64, 1024):
            at = step_cost("nt_xent", batch=batch, dim=512, ranks=ranks)
            cells = (f"{at.flops:.1e}", *(f"{b / 2**30:.2f} GiB" for b in (at.gathered, at.reduced, at.memory)))
            lines.append(f"| {batch:,} | {ranks:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


RECORDED = {
    "kontrast SupCon": "supcon",
    "kontrast TCL": "tcl",
    "kontrast NT-Xent": "nt_xent",
    "kontrast InfoNCE": "info_nce",
    "kontrast InfoNCE, keys learned": "info_nce, keys learned",
}


def recorded() -> dict[tuple[str, int], float]:
    """The peaks of docs/benchmarks/losses.md, rows against each other: MiB by loss and number of rows."""
    text = (PAGE.parent / "benchmarks" / "losses.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("**Peak memory, rows against each other**: MB that one call adds\n\n")
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rest.partition("\n\n")[0].splitlines()]
    sizes = [int(re.sub(r"\D", "", cell)) for cell in table[0][1:]]
    rows = {cells[0]: cells[1:] for cells in table[2:]}
    return {
        (loss, n): float(cell.replace(",", ""))
        for name, loss in RECORDED.items()
        for n, cell in zip(sizes, rows[name], strict=True)
    }


def modelled(loss: str, rows: int) -> float:
    """The formula's MiB for so many rows of 128 numbers."""
    views = 2 if loss == "nt_xent" else 1
    return step_cost(loss, batch=rows // views, views=views, dim=128).memory / 2**20


def memory() -> str:
    """Recorded and computed peaks."""
    peaks = recorded()
    sizes = sorted({n for _, n in peaks})
    lines = ["| | " + " | ".join(f"N = {n:,}" for n in sizes) + " |", "|---|" + "---:|" * len(sizes)]
    for loss in RECORDED.values():
        cells = [f"{modelled(loss, n):.0f} ({peaks[loss, n]:.0f})" for n in sizes]
        lines.append(f"| {loss} | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES = {"large": large, "memory": memory}


def filled(page: str) -> str:
    """The page with its tables made anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- table: {name} -->\n", "<!-- end -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{table()}\n\n{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
