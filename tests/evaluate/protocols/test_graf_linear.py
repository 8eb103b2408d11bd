"""The retrained classifier is torch's SGD with the paper's numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from kontrast.data import generator
from kontrast.evaluate import Subject, evaluate
from kontrast.evaluate.protocols.graf_linear import BATCH, START, GrafLinear


def test_it_is_sgd_with_the_power_schedule_and_without_bias(subject: Subject) -> None:
    z, y = F.normalize(subject.train.double()), subject.train_labels
    head = nn.Linear(12, 7, bias=False)
    with torch.no_grad():
        head.weight.uniform_(-(12**-0.5), 12**-0.5, generator=generator(4, START))
    head.double()
    search = torch.optim.SGD(head.parameters(), lr=0.1, weight_decay=1e-3)
    draw = generator(4, BATCH)
    for i in range(60):
        rows = torch.randint(700, (256,), generator=draw)
        search.param_groups[0]["lr"] = 0.1 * ((60 - i) / 60) ** 5
        search.zero_grad()
        F.cross_entropy(head(z[rows]), y[rows]).backward()
        search.step()
    found = GrafLinear(iterations=60).fit(F.normalize(subject.train), y, 7, seed=4, progress=None)
    assert torch.allclose(found.double(), head.weight, atol=1e-6)  # 60 steps in float32 on weights of size 0.3


def test_words_and_seed(subject: Subject) -> None:
    first, other = (evaluate(subject, "graf-linear", iterations=20, seed=s) for s in (0, 1))
    assert "SGD 20 iterations" in first.protocol
    assert first.details["iterations"] == 20
    assert first.epochs is None
    assert not torch.equal(first.predictions, other.predictions)
