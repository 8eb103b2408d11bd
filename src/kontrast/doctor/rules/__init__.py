"""The doctor's rules, one per file; the name of the file is the rule's name.

A new rule is a new file with a subclass of `Rule` (see `kontrast.doctor.rule`).
"""

from kontrast.doctor.rule import Rule
from kontrast.registry import FAMILIES

RULES = FAMILIES["rule"]

__all__ = ["RULES", "Rule"]
