"""The doctor: what ails a run, a file of features or a recipe, each disease with its evidence and its cure.

    patient → `collect_*` → record → every rule of `rules/` that knows the patient → findings, ill first

A rule is a file of `kontrast.doctor.rules`; its docstring states the sign, the thresholds and why they are so. What a
rule cannot see is ``unknown``, with what is missing; a rule that has nothing to say of a method gives no finding.

>>> import torch
>>> from kontrast import doctor
>>> found = doctor.examine_features(torch.ones(50, 8))
>>> found[0].rule, found[0].status, found[0].evidence
('complete-collapse', 'ill', 'features: spread 0.00e+00, all 50 rows are equal')
>>> doctor.names()[:3]
['batch-too-small', 'class-imbalance', 'complete-collapse']
"""

from kontrast.doctor.examining import examine_features, examine_recipe, examine_run, names, write
from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Record

__all__ = [
    "Finding",
    "Missing",
    "Record",
    "examine_features",
    "examine_recipe",
    "examine_run",
    "names",
    "write",
]
