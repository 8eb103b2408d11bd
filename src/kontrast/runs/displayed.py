"""The bases of what displays itself: in Jupyter as HTML, by ``print`` as plain text.

What is shown is said by `kontrast.report.display`, which is imported when something is.
"""

from __future__ import annotations


class Html:
    """Base of what Jupyter shows as HTML: the models of a run's files, whose plain text is pydantic's or their own."""

    def _repr_html_(self) -> str:
        from kontrast.report import display

        return display.html(self)


class Displayed(Html):
    """Base of runs, comparisons and tables, which are written by ``print`` too."""

    def __str__(self) -> str:
        from kontrast.report import display

        return display.text(self)
