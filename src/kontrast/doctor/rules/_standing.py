r"""Where the loss stands at the end: its mean over the last tenth of the log, on the way from its start to its bound.

The start is what can be had for nothing: chance (all similarities 0), or less where a collapse (all embeddings equal)
costs less than that, as with TCL, whose positives at 0 are dear. A log without the collapsed value has it computed, for
TCL, from the recipe's loss and a batch of the classes' shares: collapsed − chance, beside the chance of the log.
"""

from __future__ import annotations

from kontrast import losses
from kontrast.doctor.record import Missing, Record
from kontrast.doctor.rules._words import percent
from kontrast.geometry import bounds


def standing_of(record: Record) -> tuple[float, str]:
    """The share of the way from the start (0) to the bound (1), and the numbers in words."""
    lines = [line for line in record.lines if all(line.get(key) is not None for key in ("loss", "chance", "bound"))]
    if not lines:
        raise Missing("metrics.jsonl has no loss with its chance and bound")
    ended = lines[-max(1, len(lines) // 10) :]
    loss, chance, bound = (sum(float(line[key]) for line in ended) / len(ended) for key in ("loss", "chance", "bound"))
    known = [float(line["collapsed"]) for line in ended if line.get("collapsed") is not None]
    collapsed = sum(known) / len(known) if known else chance + _below_chance(record)
    start = min(chance, collapsed)
    name = "chance" if start == chance else "collapse"
    if start - bound <= 1e-3 * abs(start):
        raise Missing(f"room for the loss: {name} {start:.4g} and bound {bound:.4g} are the same")
    share = (start - loss) / (start - bound)
    return share, f"loss {loss:.4g}, {percent(share)} of the way from {name} {start:.4g} to its bound {bound:.4g}"


def _below_chance(record: Record) -> float:
    """Collapsed − chance, of a TCL loss; 0 for the others, where it is nearly that, and where classes are unknown."""
    if record.written is None or "k1" not in record.options:
        return 0.0
    options, batch = record.options, record.recipe.train.batch_size
    loss = losses.TCLLoss(options["temperature"], options["k1"], options["k2"])
    views = len(record.recipe.augment.views)
    if not record.method.needs_labels:
        found = bounds.standing(loss, num_pairs=batch, num_views=views)
    else:
        try:
            sizes = record.class_sizes
        except Missing:
            return 0.0
        rows = [label for label, size in enumerate(sizes) for _ in range(max(1, round(batch * size / sum(sizes))))]
        found = bounds.standing(loss, labels=rows, num_views=views)
    return found.collapsed - found.chance
