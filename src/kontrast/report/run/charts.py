"""The charts of a run's page as Altair objects, for a notebook: the same specifications, in light colours.

    run.charts.embedding_map()       one chart
    run.charts["loss"]               the same by its name on the page, which is also its file's name (``--figures``)
    list(run.charts)                 the names of all that the run has
    run.charts.training()            a section's charts together

An Altair chart displays itself in Jupyter; ``.properties(width=400)``, ``.save("loss.svg")`` and ``.to_dict()`` work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import altair as alt

from kontrast.report.figures import LIGHT, PAPER, WIDE, alone
from kontrast.report.page import Figure, Page, Section, figures
from kontrast.report.records import RunRecord, read
from kontrast.report.run import accuracy, curves, embedding, geometry, pictures
from kontrast.runs import Run

SECTIONS: tuple[Callable[[RunRecord], Section | None], ...] = (
    curves.section,
    accuracy.section,
    embedding.section,
    geometry.section,
)
"""Those with charts, in the page's order."""
GAP = 60  # pixels between two charts beside each other, with the axis of the second
APART = {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")}  # each chart has its own legend


class Charts(Mapping[str, Any]):
    """The charts of a run by their names; what the run does not have (labels, monitors) is an error that says so.

    Args:
        path: The run's folder.

    Raises:
        ValueError: It is not a run's folder.
    """

    def __init__(self, path: Path) -> None:
        Run(path).check_is_run()
        self.path = path

    def __repr__(self) -> str:
        return f"Charts({str(self.path)!r})"

    # ------------------------------------------------------------------------------------------------ by name

    def __getitem__(self, name: str) -> Any:
        """The chart of this name, such as ``"loss"``, ``"confusion"`` or ``"uniformity"`` (a monitor).

        Raises:
            KeyError: The run has no such chart; the error lists those that it has.
        """
        every = self._figures
        if name not in every:
            raise KeyError(f"{self.path} has no chart {name!r}; it has {', '.join(every) or 'none'}")
        return _altair(every[name].spec)

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    # ------------------------------------------------------------------------------------------------ one by one

    def loss(self) -> Any:
        """The loss between chance and its bound, over the steps."""
        return self._one(curves.section, "loss", NOT_LOGGED)

    def learning_rate(self) -> Any:
        """The schedule of the learning rate."""
        return self._one(curves.section, "learning-rate", NOT_LOGGED)

    def per_class(self) -> Any:
        """Accuracy by class, the hardest first."""
        return self._one(accuracy.section, "per-class", NOT_EVALUATED)

    def confusion(self) -> Any:
        """Which class is taken for which."""
        return self._one(accuracy.section, "confusion", NOT_EVALUATED)

    def embedding_map(self) -> Any:
        """Test rows in two dimensions, by t-SNE or PCA, with pictures on hover."""
        return self._one(embedding.section, "embedding-map", NOT_ANALYSED)

    def uniformity_tolerance(self) -> Any:
        """Where the features stand between the corners of the theory."""
        return self._one(geometry.section, "uniformity-tolerance", NOT_ANALYSED)

    def local_separation(self) -> Any:
        """Cosines of a view to its row's other view, and to the nearest other rows."""
        return self._one(geometry.section, "local-separation", NOT_ANALYSED)

    def simplex(self) -> Any:
        """How near the class means are to a regular simplex."""
        return self._one(geometry.section, "simplex", NOT_ANALYSED)

    # ------------------------------------------------------------------------------------------------ together

    def training(self) -> Any:
        """Loss, learning rate and monitors: every curve of the page."""
        return self._together(curves.section, NOT_LOGGED)

    def geometry(self) -> Any:
        """Uniformity and tolerance, local separation, and the simplex, as far as the run has them."""
        return self._together(geometry.section, NOT_ANALYSED)

    def neighbours(self) -> Any:
        """Images with their nearest training images, those with the most wrong classes first.

        Raises:
            ValueError: The run's rows are no images, or it has not been analysed.
        """
        section = pictures.neighbours(read(self.path))
        if section is None:
            raise ValueError(f"{self.path} has no pictures of neighbours: its rows are no images, or {NOT_ANALYSED}")
        return pictures.chart(section)

    # ------------------------------------------------------------------------------------------------ from the page

    @cached_property
    def _figures(self) -> dict[str, Figure]:
        """All of the page, as they are when they are first asked for."""
        record = read(self.path)
        sections = [section for make in SECTIONS if (section := make(record)) is not None]
        return {figure.name: figure for figure in figures(Page("", "", sections))}

    def _of(self, make: Callable[[RunRecord], Section | None]) -> list[Figure]:
        """The charts of a section; only what they need is computed."""
        section = make(read(self.path))
        return [] if section is None else figures(Page("", "", [section]))

    def _one(self, make: Callable[[RunRecord], Section | None], name: str, why: str) -> Any:
        for figure in self._of(make):
            if figure.name == name:
                return _altair(figure.spec)
        raise ValueError(f"{self.path} has no chart {name!r}: {why}")

    def _together(self, make: Callable[[RunRecord], Section | None], why: str) -> Any:
        """A wide chart fills a line, two others share one."""
        found = self._of(make)
        if not found:
            raise ValueError(f"{self.path} has no such charts: {why}")
        lines: list[list[Figure]] = []
        for figure in found:
            if lines and not figure.wide and len(lines[-1]) == 1 and not lines[-1][0].wide:
                lines[-1].append(figure)
            else:
                lines.append([figure])
        rows = []
        for line in lines:
            wide = WIDE if line[0].wide else (WIDE - GAP) // 2
            charts = [{**_inline(figure.spec), "width": wide} for figure in line]
            rows.append(charts[0] if len(charts) == 1 else {"hconcat": charts, "resolve": APART})
        together = {"vconcat": rows, "resolve": APART}
        return _altair(together)


NOT_LOGGED = "nothing was logged yet, or not this"
NOT_EVALUATED = "the run was not evaluated, or has no labels"
NOT_ANALYSED = "the run has not been analysed, or has no labels"


def _altair(spec: Mapping[str, Any]) -> Any:
    """A chart on white paper, so that it can be read on a dark page too."""
    light = alone(spec)
    return alt.Chart.from_dict({**light, "config": {**light["config"], "background": LIGHT[PAPER]}})


def _inline(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A chart with its data inside, without what only a whole chart has: it can stand beside others."""
    datasets = spec.get("datasets", {})

    def inside(x: Any) -> Any:
        if isinstance(x, Mapping):
            if set(x) == {"name"} and x["name"] in datasets:
                return {"values": datasets[x["name"]]}
            return {key: inside(value) for key, value in x.items()}
        return [inside(value) for value in x] if isinstance(x, list) else x

    return {key: inside(value) for key, value in spec.items() if key not in ("$schema", "config", "datasets")}
