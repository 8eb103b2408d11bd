"""The doctor: what is wrong with a run, features or a recipe; each finding with its evidence and advice.

    patient → `collect_*` → record → every rule of `rules/` that applies → findings, problems first

| status | meaning |
|---|---|
| problem | the sign is there: follow the advice |
| warning | near it, or a choice that often goes wrong: look at it if the result disappoints |
| unknown | the rule could not judge; the evidence says what is missing |
| ok | the sign is not there |

A rule is a file of `kontrast.doctor.rules`; its docstring has the sign, the thresholds and the reasons for them. A rule
that does not apply (a queue's, to a method without one) gives no finding.

>>> import torch
>>> from kontrast import doctor
>>> finding = doctor.examine_features(torch.ones(50, 8))[0]
>>> finding.rule, finding.status, finding.evidence
('complete-collapse', 'problem', 'features: spread 0.00e+00, all 50 rows are equal')
>>> doctor.names()[:3]
['batch-too-small', 'class-imbalance', 'complete-collapse']
"""

from kontrast.doctor.examining import examine_features, examine_recipe, examine_run, names, to_json, write
from kontrast.doctor.record import Missing, Record
from kontrast.runs import Finding

__all__ = [
    "Finding",
    "Missing",
    "Record",
    "examine_features",
    "examine_recipe",
    "examine_run",
    "names",
    "to_json",
    "write",
]
