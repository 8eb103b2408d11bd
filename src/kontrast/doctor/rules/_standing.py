"""Where the loss stands at the end: its mean over the last tenth of the log, between chance and bound."""

from __future__ import annotations

from kontrast.doctor.record import Missing, Record


def standing_of(record: Record) -> tuple[float, str]:
    """The share of the way from chance (0) to the bound (1), and the numbers in words."""
    lines = [line for line in record.lines if all(line.get(key) is not None for key in ("loss", "chance", "bound"))]
    if not lines:
        raise Missing("metrics.jsonl has no loss with its chance and bound")
    ended = lines[-max(1, len(lines) // 10) :]
    loss, chance, bound = (sum(float(line[key]) for line in ended) / len(ended) for key in ("loss", "chance", "bound"))
    if chance - bound <= 1e-3 * abs(chance):
        raise Missing(f"room for the loss: chance {chance:.4g} and bound {bound:.4g} are the same")
    share = (chance - loss) / (chance - bound)
    return share, f"loss {loss:.4g}, {100 * share:.0f} % of the way from chance {chance:.4g} to its bound {bound:.4g}"
