r"""LaTeX, with the booktabs package: a table environment for each table, the claims as a list after them."""

from __future__ import annotations

import re

from kontrast.experiments.tables._layout import INTERVALS, Entry, Layout, findings, folders, layouts, text
from kontrast.experiments.tables._summary import Summary

COMMANDS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "…": r"\ldots{}",
    "’": "'",
    "[": "{[}",  # after a line break these two would be its options
    "*": "{*}",
}
COMMANDS |= {letter: f"\\{letter}" for letter in "&%$#_{}"}
GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi . pi rho . sigma tau upsilon phi chi psi"
)
MATHS = {
    "±": r"\pm",
    "−": "-",
    "×": r"\times",
    "·": r"\cdot",
    "→": r"\to",
    "≥": r"\geq",
    "≤": r"\leq",
    "≈": r"\approx",
    "≪": r"\ll",
    "²": "^2",
    "₁": "_1",
    "₂": "_2",
    "∞": r"\infty",
    "√": r"\surd",
    "ω": r"\omega",
    "Δ": r"\Delta",
    "Σ": r"\Sigma",
}
MATHS |= {chr(ord("α") + k): f"\\{name}" for k, name in enumerate(GREEK.split()) if name != "."}
COMMANDS |= {letter: f"${command}$" for letter, command in MATHS.items()}
SPECIAL = re.compile("|".join(map(re.escape, COMMANDS)))


def latex(summary: Summary) -> str:
    r"""Tables to ``\input``; needs ``\usepackage{booktabs}``."""
    parts = [
        f"% {text(summary['experiment'])}, preset {text(summary['preset'])}; needs \\usepackage{{booktabs}}",
        *(_table(layout, summary, k) for k, layout in enumerate(layouts(summary))),
    ]
    if summary["claims"]:
        lines = [r"\begin{description}"]
        for claim, statistic, found in findings(summary):
            lines.append(f"\\item[{{{escaped(claim)}}}] Statistic: {escaped(statistic)}.")
            lines += [f"  {escaped(says)}: \\emph{{{escaped(verdict)}}}." for verdict, says in found]
        parts.append("\n".join([*lines, r"\end{description}"]))
    parts.append("\n".join(f"% {place}: {', '.join(names)}" for place, names in folders(summary)))
    return "\n\n".join(parts) + "\n"


def escaped(value: object) -> str:
    r"""One line in which nothing is a command; Greek letters and signs become mathematics.

    >>> print(escaped("50 % of x_1 ± τ"))
    50 \% of x\_1 $\pm$ $\tau$
    """
    return SPECIAL.sub(lambda found: COMMANDS[found[0]], text(value))


def _table(layout: Layout, summary: Summary, number: int) -> str:
    name = re.sub(r"[^A-Za-z0-9-]", "-", summary["experiment"])
    caption = ". ".join(filter(None, [escaped(summary["title"]), escaped(layout.caption), escaped(INTERVALS)]))
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{name}{f'-{number + 1}' if number else ''}}}",
        f"\\begin{{tabular}}{{l{'r' * len(layout.columns)}}}",
        r"\toprule",
        " & ".join(map(escaped, [layout.corner, *layout.columns])) + r" \\",
        r"\midrule",
    ]
    for row, entries in zip(layout.rows, layout.entries, strict=True):
        lines.append(" & ".join([escaped(row), *map(_cell, entries)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _cell(entry: Entry | None) -> str:
    if entry is None:
        return ""
    ours = escaped(entry.ours) if entry.good else f"\\emph{{{escaped(entry.ours)}}}"
    return f"\\shortstack[r]{{{ours}\\\\{{\\footnotesize {escaped(entry.paper)}}}}}" if entry.paper else ours
