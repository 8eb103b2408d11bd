"""An experiment's table: the summary, which is its JSON, and what is made of it for a terminal, a page or a paper.

Each cell has the paper's value where it printed one, our mean ± half-width (n), the difference, and the folders of its
runs. What failed or is missing is said, never a number; a censored value is a lower bound: "> 3000".

Everything but `summary` takes a summary alone, fresh or read from JSON, and escapes what its format would take for
markup. The JSON itself is ``kontrast.files.dump(summary)``.
"""

from __future__ import annotations

from kontrast.experiments.tables._csv import csv
from kontrast.experiments.tables._latex import latex
from kontrast.experiments.tables._layout import from_ledger
from kontrast.experiments.tables._markdown import markdown
from kontrast.experiments.tables._summary import Summary, baselines, summary
from kontrast.experiments.tables._terminal import claims, terminal

__all__ = ["Summary", "baselines", "claims", "csv", "from_ledger", "latex", "markdown", "summary", "terminal"]
