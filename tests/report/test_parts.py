"""What a page is made of."""

from __future__ import annotations

import dataclasses

import pytest

from kontrast.report.parts import Figure, Fold, Page, Section, Text, figures


def test_figures_are_found_in_folds_too() -> None:
    one, two, three = (Figure(name, {}) for name in ("one", "two", "three"))
    sections = [Section("a", [Text("…"), one, Fold("more", [two, Fold("still more", [three])])]), Section("b", [one])]
    assert [figure.name for figure in figures(Page("", "", sections))] == ["one", "two", "three", "one"]


def test_parts_stay_as_they_are() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Text("a").text = "b"  # type: ignore[misc]
