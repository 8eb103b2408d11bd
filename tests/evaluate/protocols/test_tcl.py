"""TCL's linear stage: the schedule of its code, batch norm that keeps moving, in a copy."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kontrast import augment, data
from kontrast.data import DataSet, Loader, Shuffled, generator
from kontrast.evaluate import Subject, evaluate
from kontrast.evaluate.protocols._augmented import BEST, START
from kontrast.evaluate.protocols.tcl import TCL


def test_it_is_torchs_sgd_with_moving_statistics(encoder: nn.Module, pictures: DataSet) -> None:
    found = evaluate(Subject.from_encoder(encoder, pictures), "tcl", epochs=3, batch_size=64, seed=3)
    network, head = copy.deepcopy(encoder).train(), nn.Linear(128, 10)
    with torch.no_grad():
        drawn = torch.empty(10, 129).uniform_(-(128**-0.5), 128**-0.5, generator=generator(3, START))
        head.weight.copy_(drawn[:, :-1])
        head.bias.copy_(drawn[:, -1])
    search = torch.optim.SGD(head.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-4)
    views = augment.preset("crop-flip", size=28, mean=pictures.mean, std=pictures.std)
    loader = Loader(pictures.train, Shuffled(300, 64, seed=3), seed=3)
    for epoch in range(3):
        for batch in loader.epoch(epoch):
            with torch.no_grad():
                h = network(views(batch.inputs, batch.generator()))
            search.zero_grad()
            F.cross_entropy(head(h), batch.labels).backward()
            search.step()
        # After the epoch, with its index: SupContrast's cosine to lr·0.1³.
        low = 0.5 * 0.1**3
        search.param_groups[0]["lr"] = low + (0.5 - low) * (1 + torch.tensor(torch.pi * epoch / 3).cos().item()) / 2
    test = (pictures.test.inputs.read(torch.arange(100)).float() / 255 - 0.5) / 0.5
    with torch.no_grad():
        expected = head(network.eval()(test)).argmax(1)
    # Gradients by autograd and by hand round differently: a row on a boundary may turn.
    assert (found.predictions != expected).sum() <= 1
    assert BEST not in found.details, "the paper takes the last epoch"
    assert not torch.equal(network[1].running_mean, encoder[1].running_mean), "statistics of the copy alone have moved"


def test_the_first_two_epochs_run_at_the_start(encoder: nn.Module, pictures: DataSet) -> None:
    settings = TCL().settings(Subject.from_encoder(encoder, pictures))
    rates = [settings.rate(e) for e in range(50)]
    assert (settings.epochs, settings.batch_size, settings.weight_decay) == (50, 128, 1e-4)
    assert rates[0] == rates[1] == 0.5
    assert rates[2] < 0.5
    assert rates[26] == pytest.approx((0.5 + 0.0005) / 2), "half-way, one epoch late"


def test_augmentation_and_batch_follow_the_data(encoder: nn.Module, pictures: DataSet) -> None:
    def settings(made: DataSet, **options: object):
        return TCL().settings(Subject.from_encoder(encoder, made, **options))

    coloured = data.load("fashion-mini", limit=100, test_limit=20, channels=3)
    assert not any(isinstance(o, augment.AutoAugment) for o in settings(pictures).augmentation.operations)
    assert any(isinstance(o, augment.AutoAugment) for o in settings(coloured).augmentation.operations)
    named = settings(coloured, augmentation="weak")
    assert isinstance(named.augmentation.operations[0], augment.RandomResizedCrop)
    assert "augmentation weak" in named.words
    many = replace(pictures, class_names=[str(i) for i in range(100)])
    assert settings(many).batch_size == 256


def test_another_augmentation_is_in_the_words(encoder: nn.Module, pictures: DataSet) -> None:
    subject = Subject.from_encoder(encoder, pictures)
    found = evaluate(subject, "tcl", epochs=1, batch_size=64, augmentation="none")
    assert "augmentation none" in found.protocol
