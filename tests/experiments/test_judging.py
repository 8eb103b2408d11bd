"""The papers' own tables as results: they come out as the papers say; with an axis reversed or shuffled they do not."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from kontrast import experiments
from kontrast.experiments.claims import FAILS, HOLDS, OPEN
from kontrast.experiments.experiment import Claim, Experiment, Finding
from kontrast.experiments.judging import Place, judge, judge_paper, paper_rows
from kontrast.recipes.published import TCL_SEEDS

# What the printed numbers leave open, and why: one run a cell, and an effect below the smallest visible one.
OPEN_IN_PRINT = {
    ("graf-table", "CE-fix's error is below CE's"): "0.45 points over both sets, 0.93 would be visible",
    ("sce-lambda", "λ = 0.5 is better than λ = 0"): "1.4 points on 5,000 test rows, 2.1 would be visible",
    ("tcl-table-2", "TCL is better than SupCon"): "0.37 points over four sets, 0.67 would be visible",
}
PRINTED = ("graf-table", "sce-lambda", "sce-table-2", "tcl-table-1", "tcl-table-2", "wl-losses", "wl-table-1",
           "wl-table-2", "wl-uniformity-tolerance")  # fmt: skip


def decisive(found: list[Finding]) -> list[Finding]:
    """The finding over all parts where there is one, else every part's."""
    together = [finding for finding in found if finding.where.startswith("all ")]
    return together or found


def judged(experiment: Experiment) -> list[tuple[Claim, list[Finding]]]:
    rows = paper_rows(experiment)
    every = [(claim, judge(claim, rows)) for claim in experiment.claims]
    return [(claim, found) for claim, found in every if found]


def test_which_experiments_have_printed_numbers() -> None:
    assert tuple(name for name in experiments.names() if judged(experiments.find(name))) == PRINTED


@pytest.mark.parametrize("name", PRINTED)
def test_the_papers_table_comes_out_as_the_paper_says(name: str) -> None:
    for claim, found in judged(experiments.find(name)):
        assert FAILS not in {finding.verdict for finding in found}, claim.text
        expected = OPEN if (name, claim.text) in OPEN_IN_PRINT else HOLDS
        assert {finding.verdict for finding in decisive(found)} == {expected}, claim.text
        assert all(finding.error for finding in decisive(found)), "what the error is taken from is said"


def reversed_along(experiment: Experiment, axis: str) -> list[tuple[Claim, list[Finding]]]:
    """The findings on the table with an axis's values in reverse order, among those that the paper prints."""
    printed = {row.at[axis] for row in paper_rows(experiment)}
    values = [value for value in experiment.axes[axis] if value in printed]
    other = dict(zip(values, reversed(values), strict=True))

    def moved(at: Place) -> Place:
        return {**at, axis: other.get(at[axis], at[axis])}

    rows = paper_rows(experiment, moved)
    return [(claim, judge(claim, rows)) for claim in experiment.claims]


@pytest.mark.parametrize(
    ("name", "axis", "texts"),
    [
        ("wl-table-1", "temperature", "accuracy rises, then falls"),
        ("wl-table-2", "temperature", "accuracy rises"),
        ("wl-uniformity-tolerance", "temperature", "with the ordinary loss"),
        ("wl-uniformity-tolerance", "loss", "the hard loss"),
        ("tcl-table-1", "method", "TCL is better"),
        ("tcl-table-2", "method", "TCL is"),
        ("sce-lambda", "weight", "λ = 0.5 is better than λ = 1"),
        ("graf-table", "method", "SC's error"),
        ("graf-table", "augmented", "augmentation lowers"),
    ],
)
def test_a_reversed_table_does_not(name: str, axis: str, texts: str) -> None:
    found = [(claim, each) for claim, each in reversed_along(experiments.find(name), axis) if texts in claim.text]
    assert found
    for claim, each in found:
        assert each, claim.text
        assert HOLDS not in {finding.verdict for finding in each}, claim.text


@pytest.mark.parametrize("name", ["tcl-table-1", "tcl-table-2"])
def test_supcon_and_tcl_exchanged_tcl_is_not_as_good(name: str) -> None:
    """Over all sets. On CIFAR-10 and FMNIST alone the printed difference is below the margin either way."""
    [(claim, found)] = [
        (claim, each) for claim, each in reversed_along(experiments.find(name), "method") if "as good" in claim.text
    ]
    assert {finding.verdict for finding in decisive(found)} <= {OPEN, FAILS}, claim.text
    assert len(decisive(found)) == 1


def test_a_reversed_grid_of_sce_does_not() -> None:
    """Over all sets, and on each but Tiny ImageNet, whose row is symmetric: 50.23 at 0.03, 50.46 at 0.1."""
    claim, found = reversed_along(experiments.find("sce-table-2"), "target")[0]
    assert "sharper target" in claim.text
    verdicts = {finding.where: finding.verdict for finding in found}
    assert len(verdicts) == 5
    assert {where for where, verdict in verdicts.items() if verdict == HOLDS} <= {"data=tiny-imagenet"}


def test_the_simple_losses_exchanged_do_not() -> None:
    """Simple and hard-simple loss at each other's place: every claim about them is false."""
    experiment = experiments.find("wl-losses")
    other = {"simple": "hard-simple", "hard-simple": "simple"}
    rows = paper_rows(experiment, lambda at: {**at, "loss": other.get(str(at["loss"]), at["loss"])})
    for claim in experiment.claims:
        assert {finding.verdict for finding in decisive(judge(claim, rows))} == {FAILS}, claim.text


def test_that_nothing_is_gained_is_said_of_fashion_mnist_alone() -> None:
    """Nothing gained is nothing lost when reversed; CIFAR-100's numbers in its place are another matter."""
    experiment = experiments.find("tcl-table-2")
    rows = paper_rows(experiment, lambda at: {**at, "data": "cifar100"})
    [claim] = [claim for claim in experiment.claims if "gain nothing" in claim.text]
    assert {finding.verdict for finding in judge(claim, rows)} == {FAILS}


@pytest.mark.parametrize(("name", "axis"), [("wl-table-1", "temperature"), ("wl-table-2", "temperature"),
                                            ("sce-table-2", "target")])  # fmt: skip
def test_a_shuffled_table_seldom_does(name: str, axis: str) -> None:
    """At the rate of the 95 % interval: one side of it in 2.5 % of all shuffles, on each set."""
    experiment, draw, counts = experiments.find(name), random.Random(0), Counter[str]()
    values = [value for value in experiment.axes[axis] if value is not None]
    for _ in range(100):
        other = dict(zip(values, draw.sample(values, len(values)), strict=True))
        if name == "sce-table-2" and other[0.1] == 0.1:
            continue  # the claim is about the number at τ_m = τ, which is where it was

        def moved(at: Place, other: dict = other) -> Place:  # type: ignore[type-arg]
            return {**at, axis: other.get(at[axis], at[axis])}

        counts.update(finding.verdict for finding in judge(experiment.claims[0], paper_rows(experiment, moved)))
    assert counts[HOLDS] <= 0.08 * counts.total()


def test_the_record_is_that_of_a_result() -> None:
    found = judge_paper(experiments.find("wl-table-1"))
    assert [set(claim) for claim in found] == [{"text", "kind", "statistic", "findings"}]
    assert found[0]["kind"] == "accuracy"
    assert found[0]["findings"][0]["where"] == "data=cifar10"
    assert judge_paper(experiments.find("graf-toy"))[0]["findings"] == []


def test_presets_of_the_papers_have_seeds() -> None:
    """The paper's number where it is given (`TCL_SEEDS`), else three; what trains nothing has what it needs."""
    trained = [name for name in experiments.names() if "cpu" in experiments.find(name).presets]
    for name in trained:
        experiment = experiments.find(name)
        preset = experiment.presets["paper"]
        axes = {**experiment.axes, **preset.axes}
        for values in itertools.product(*axes.values()) if "data" in axes else ():
            at = dict(zip(axes, values, strict=True))
            count = preset.seeds if preset.seeds_at is None else preset.seeds_at(at)
            assert count == (TCL_SEEDS[str(at["data"])] if name == "tcl-table-1" else 3), (name, at)
