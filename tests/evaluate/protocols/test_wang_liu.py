"""Wang & Liu's probe: torch's SGD on features of augmented images, with the paper's numbers."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kontrast import augment
from kontrast.data import DataSet, Loader, Shuffled, generator
from kontrast.evaluate import Subject, evaluate
from kontrast.evaluate.protocols._augmented import BEST, START
from kontrast.evaluate.protocols.wang_liu import WangLiu


def test_it_is_torchs_sgd_on_flipped_images(encoder: nn.Module, pictures: DataSet) -> None:
    found = evaluate(Subject.from_encoder(encoder, pictures), "wang-liu", epochs=5, batch_size=64, seed=3)
    head = nn.Linear(128, 10)
    with torch.no_grad():
        drawn = torch.empty(10, 129).normal_(0.0, 0.01, generator=generator(3, START))
        head.weight.copy_(drawn[:, :-1])
        head.bias.zero_()
    search = torch.optim.SGD(head.parameters(), lr=30.0, momentum=0.9)
    flip = augment.Compose([augment.HorizontalFlip(0.5), augment.Normalize(pictures.mean, pictures.std)])
    loader = Loader(pictures.train, Shuffled(300, 64, seed=3, drop_last=False), seed=3)
    encoder.eval()
    accuracies = []
    test = (pictures.test.inputs.read(torch.arange(100)).float() / 255 - 0.5) / 0.5
    for epoch, rate in enumerate((30.0, 30.0, 6.0, 1.2, 0.24)):  # × 0.2 at 40, 60, 80 %
        search.param_groups[0]["lr"] = rate
        for batch in loader.epoch(epoch):
            with torch.no_grad():
                h = encoder(flip(batch.inputs, batch.generator()))
            search.zero_grad()
            F.cross_entropy(head(h), batch.labels).backward()
            search.step()
        with torch.no_grad():
            scores = head(encoder(test))
        accuracies.append(float((scores.argmax(1) == pictures.test.labels).double().mean()))
    # Gradients by autograd and by hand round differently, and a rate of 30 magnifies it: a row may turn.
    assert (found.predictions != scores.argmax(1)).sum() <= 1
    assert found.value == pytest.approx(accuracies[-1], abs=0.011), "the last epoch counts"
    best = found.details[BEST]
    assert best["accuracy"] == pytest.approx(max(accuracies), abs=0.011)
    assert best["accuracy"] >= found.value


def test_the_schedule_of_100_epochs(encoder: nn.Module, pictures: DataSet) -> None:
    settings = WangLiu().settings(Subject.from_encoder(encoder, pictures))
    assert (settings.epochs, settings.batch_size, settings.weight_decay) == (100, 256, 0.0)
    rates = [settings.rate(epoch) for epoch in (0, 39, 40, 59, 60, 79, 80, 99)]
    assert rates == pytest.approx([30, 30, 6, 6, 1.2, 1.2, 0.24, 0.24])


def test_augmentation_by_the_kind_of_images(encoder: nn.Module, pictures: DataSet) -> None:
    from dataclasses import replace

    def first(data: DataSet) -> augment.Operation:
        return WangLiu().settings(Subject.from_encoder(encoder, data)).augmentation.operations[0]

    assert isinstance(first(pictures), augment.HorizontalFlip)
    assert isinstance(first(replace(pictures, name="svhn")), augment.ColorJitter)


def test_vectors_are_an_error() -> None:
    from kontrast import data

    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    made = data.from_arrays(x, [0, 1] * 10, x, [0, 1] * 10)
    with pytest.raises(ValueError, match="augments images"):
        evaluate(Subject.from_encoder(nn.Flatten(), made), "wang-liu")


def test_divergence_is_told(pictures: DataSet) -> None:
    class Huge(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.flatten(1) * 1e30

    with pytest.raises(ValueError, match="diverged in epoch 1 at learning rate 30"):
        evaluate(Subject.from_encoder(Huge(), pictures), "wang-liu", epochs=2)
