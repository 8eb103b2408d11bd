"""What a recipe claims: paper, table, number, hardware; and the command that puts it to the test.

>>> print(Claim("TCL on CIFAR-10", "TCL, Table 1", "accuracy 96.30 %", ONE_GPU).about("tcl-cifar10"))
TCL on CIFAR-10. TCL, Table 1: accuracy 96.30 %. Hardware: one GPU; not run here. Run: kontrast train tcl-cifar10
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kontrast.recipe import Recipe

ONE_GPU = "one GPU; not run here"


class Claim(NamedTuple):
    """``source`` is the paper and its table or section, ``expected`` the number with its unit."""

    what: str
    source: str
    expected: str
    hardware: str

    def about(self, name: str) -> str:
        """One line, as a recipe carries it."""
        told = f"{self.what}. {self.source}: {self.expected}. Hardware: {self.hardware}."
        return f"{told} Run: kontrast train {name}"


class Book:
    """The recipes of a paper with their claims."""

    def __init__(self) -> None:
        self.recipes: dict[str, Recipe] = {}
        self.claims: dict[str, Claim] = {}

    def add(self, name: str, claim: Claim, **sections: Any) -> Recipe:
        """A recipe of these sections under this name."""
        made = Recipe.of({"name": name, "about": claim.about(name), **sections})
        self.recipes[name], self.claims[name] = made, claim
        return made
