"""How many negatives share the penalty: e^H, of a run by its last monitor, of features measured."""

from __future__ import annotations

import math

import torch

from kontrast.doctor.record import Missing, Record
from kontrast.geometry import penalty_entropy

ANCHORS, FEWEST = 1000, 20
GATHERED = -0.04  # uniformity: a spread of 0.01


def gathered(record: Record) -> bool:
    """Whether all of a run's embeddings are so near one point that no temperature tells them apart."""
    return record.patient == "run" and record.last("monitor/uniformity") > GATHERED


def effective_negatives(record: Record, tau: float) -> tuple[float, int, str]:
    """e^H, of how many negatives, and where embeddings stand between uniformity and tolerance, in words."""
    if record.patient == "features":
        x = record.features
        if len(x) < FEWEST:
            raise Missing(f"{len(x)} rows are too few; {FEWEST} or more would do")
        rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:ANCHORS]
        each = penalty_entropy(x[rows], x[rows], x, rows, temperature=tau)
        return math.exp(float(each.double().mean())), len(x) - 1, ""
    h, share = record.last("monitor/entropy"), record.last("monitor/entropy_share")
    words = ""
    try:
        u = record.last("monitor/uniformity")
        words = f"; uniformity {u:.2f}"
        words += f", tolerance {record.last('monitor/tolerance'):.2f}"
    except Missing:
        pass  # without labels there is no tolerance
    if share <= 0:
        raise Missing("the entropy's share of its most, in metrics.jsonl, is not above 0")
    return math.exp(h), round(math.exp(h / share)), words
