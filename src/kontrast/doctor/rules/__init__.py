"""The rules, one a file: the file's name is the rule's. Each states its sign, its thresholds and why they are so.

A new rule is a new file with a subclass of `Rule`; nothing is listed twice, and the table of docs/doctor.md is made
from the docstrings.
"""

from kontrast.doctor.rules._base import Rule
from kontrast.registry import Family

RULES = Family("kontrast.doctor.rules")

__all__ = ["RULES", "Rule"]
