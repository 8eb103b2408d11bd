"""`Displayed`: the base of what displays itself, in Jupyter as HTML and by ``print`` as plain text.

What is shown is said by `kontrast.report.display`, which is imported when something is.
"""

from __future__ import annotations


class Displayed:
    """Base of runs, verdicts, comparisons and tables; `kontrast.report.display.parts_of` knows what each shows."""

    def _repr_html_(self) -> str:
        from kontrast.report import display

        return display.html(self)

    def __str__(self) -> str:
        from kontrast.report import display

        return display.text(self)
