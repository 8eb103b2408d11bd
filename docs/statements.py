"""Write docs/theory.md: every statement that `kontrast verify` checks, with its source, conditions and measured error.

python docs/statements.py
"""

from __future__ import annotations

from pathlib import Path

from kontrast.theory import verify

INTRODUCTION = """# The theory, checked

`kontrast verify` measures every lemma, theorem and identity below on random inputs and says whether it holds:

```
kontrast verify                    # all of them, a line each; status 1 if one fails
kontrast verify --only "sce-*"     # some
kontrast verify --seed 7 --json    # other inputs; a list of objects for a program
```

The error of an identity is its largest deviation (relative above 1), of an inequality its largest violation; it is
infinite where something that must happen does not. The tests break each formula and see its check fail.

From Python, `kontrast.theory.verify()` yields the outcomes. `free_points` minimises a loss over free points,
`label_configurations` finds the minimisers of single batches and of all together:

```python
>>> from kontrast import theory
>>> run = theory.free_points("sc", num_classes=4, per_class=100, dim=3)
>>> run.path.shape, run.excess < 1e-9, run.deviation.largest < 1e-4  # path; at the bound; a simplex
(torch.Size([51, 400, 3]), True, True)
>>> study = theory.label_configurations(num_classes=3, batch_size=4, per_class=2)
>>> [at.counts for at in study.configurations if not at.is_simplex], study.all_batches.is_simplex
([(3, 1, 0), (2, 2, 0), (2, 1, 1)], True)

```

| check | statement | source | error |
|---|---|---|---:|
"""


def page() -> str:
    """The introduction and a row for each check, measured now."""
    rows = []
    for outcome in verify():
        if not outcome.holds:
            raise SystemExit(f"{outcome.name} fails: {outcome.error} {outcome.failure}")
        statement = outcome.statement + (f" (if {outcome.conditions})" if outcome.conditions else "")
        cells = (f"`{outcome.name}`", statement, outcome.source, f"{outcome.error:.0e}" if outcome.error else "0")
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return INTRODUCTION + "\n".join(rows) + "\n\nWritten by `python docs/statements.py`, seed 0.\n"


if __name__ == "__main__":
    (Path(__file__).parent / "theory.md").write_text(page())
