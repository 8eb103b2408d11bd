"""Penalty entropy against a literal loop."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from kontrast.train.monitors import measure
from tests.train.monitors.snapshots import snapshot


@pytest.mark.parametrize("views", [1, 2, 3])
def test_the_first_view_against_the_second_with_the_other_images_as_negatives(views: int) -> None:
    given = snapshot(m=9, views=views, embeddings=snapshot(m=9, views=views).embeddings.double(), temperature=0.3)
    z = F.normalize(given.embeddings, dim=2)
    total = 0.0
    for i in range(9):
        e = [math.exp(float(z[i, 0] @ z[j, min(1, views - 1)]) / 0.3) for j in range(9) if j != i]
        total -= sum(x / sum(e) * math.log(x / sum(e)) for x in e)
    found = measure(["entropy"], given)
    assert found == pytest.approx(
        {"monitor/entropy": total / 9, "monitor/entropy_share": total / 9 / math.log(8)}, rel=1e-9
    )  # float64 sums of nine terms


def test_it_rises_with_the_temperature_towards_its_share_of_one() -> None:
    shares = [measure(["entropy"], snapshot(temperature=t))["monitor/entropy_share"] for t in (0.05, 0.5, 50.0)]
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == pytest.approx(1.0, abs=1e-3)  # Var(s)/(2τ²) below 1e-3


def test_two_images_have_one_negative_each_and_no_share() -> None:
    assert measure(["entropy"], snapshot(m=2, labels=torch.arange(2))) == {"monitor/entropy": 0.0}
