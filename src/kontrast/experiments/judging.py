r"""The papers' own tables, put to our claims as if they were results: do they come out as the papers say?

A statistic that cannot see an effect in the paper's own table cannot see it in ours either. Papers print one number a
cell, so the error comes from what is there: the printed interval (1), or the test rows (2), or, inside a claim, the
residuals of a fitted curve or the data sets as replicates (`kontrast.experiments.claims`).

    (1)  h/1.96                 h the printed half-width of a 95 % interval
    (2)  100 √(p(1 − p)/n)      a share p of n test rows, in percent; two runs on the same rows are taken as independent
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import ERROR, Claim, Experiment, Finding, Measure, Published, Row, kind_of
from kontrast.experiments.plan import check
from kontrast.intervals import student
from kontrast.recipes.published import TEST_ROWS

Place = dict[str, Value]


def paper_rows(experiment: Experiment, moved: Callable[[Place], Place] = dict) -> list[Row]:
    """A row for each place of the grid for which the paper prints a number, as of one seed.

    Args:
        experiment: The experiment.
        moved: Gives the place whose numbers are put at a place. Another place than itself makes a table with its axis
            reversed or shuffled, in which a claim about that axis must not hold.

    >>> from kontrast.experiments import find
    >>> rows = paper_rows(find("wl-table-1"))
    >>> rows[0].at, rows[0].values["linear"], round(rows[0].values["error:linear"], 2)
    ({'data': 'cifar10', 'temperature': 0.05, 'seed': 0}, 76.1, 0.43)
    """
    rows = []
    for values in itertools.product(*experiment.axes.values()):
        at: Place = dict(zip(experiment.axes, values, strict=True))
        if not experiment.keep(at):
            continue
        there, numbers = moved(at), dict[str, float | None]()
        test_rows = TEST_ROWS.get(str(there.get("data")))
        for measure in experiment.measures:
            numbers |= _numbers(measure, experiment.published(there, measure.name), test_rows)
        if numbers:
            rows.append(Row({**at, "seed": 0}, "paper", "done", numbers))
    return rows


def _numbers(measure: Measure, published: Published, test_rows: int | None) -> dict[str, float]:
    value, half = published if isinstance(published, tuple) else (published, None)
    if value is None:
        return {}
    numbers = {measure.name: value}
    if half is not None:
        numbers[f"{ERROR}:{measure.name}"] = half / student(math.inf)  # (1)
    elif measure.protocols and test_rows:
        share = value / 100
        numbers[f"{ERROR}:{measure.name}"] = 100 * math.sqrt(share * (1 - share) / test_rows)  # (2)
    return numbers


def judge(claim: Claim, rows: Sequence[Row]) -> list[Finding]:
    """The findings of a claim on the paper's rows; none if the paper does not print the numbers that it reads.

    >>> from kontrast.experiments import find
    >>> experiment = find("wl-table-2")
    >>> [finding.verdict for finding in judge(experiment.claims[0], paper_rows(experiment))]
    ['holds', 'holds', 'holds', 'holds']
    """
    complete = [row for row in rows if all(name in row.values for name in claim.measures)]
    findings = claim.test(complete) if complete else []
    return [finding for finding in findings if finding.n]  # 0: no cells of a part


def judge_paper(experiment: Experiment) -> list[dict[str, Any]]:
    """Each claim of an experiment with its findings on the paper's table, in the form of result.json."""
    check(experiment)
    rows = paper_rows(experiment)
    return [
        {
            "text": claim.text,
            "kind": kind_of(claim, experiment.measures),
            "statistic": claim.statistic,
            "findings": [vars(finding) for finding in judge(claim, rows)],
        }
        for claim in experiment.claims
    ]
