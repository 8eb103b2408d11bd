"""Charts of made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kontrast.report import comparison
from kontrast.report.figures import COLOURS, draw
from kontrast.report.page import figures
from tests.report.comparison.made_up import figure, rows, write_run


def test_losses_of_one_scale_share_a_chart_and_others_do_not(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / "a", name="a", method={"k1": 1}),
        write_run(tmp_path / "b", name="b", method={"k1": 2}),
    ]
    assert [f.name for f in figures(comparison.page(made)) if f.name.startswith("loss")] == ["loss"]
    made.append(write_run(tmp_path / "c", name="c", chance=9.0))
    names = [f.name for f in figures(comparison.page(made)) if f.name.startswith("loss")]
    assert names == ["loss-place", "loss-1", "loss-2"]


def test_corners_are_drawn_only_where_all_runs_have_the_same(tmp_path: Path) -> None:
    made = [write_run(tmp_path / n, name=n) for n in "ab"]
    said = figure(comparison.page(made), "uniformity-tolerance")
    assert {row["says"] for row in rows(said.spec) if "says" in row} == {
        "even over the sphere",
        "classes at simplex vertices",
    }
    made.append(write_run(tmp_path / "c", name="c", simplex={"num_classes": 2}))
    said = figure(comparison.page(made), "uniformity-tolerance")
    assert {row["says"] for row in rows(said.spec) if "says" in row} == {"even over the sphere"}
    assert said.caption.endswith("Left out, because they differ between the runs: classes at simplex vertices.")
    crowded = [write_run(tmp_path / n, name=n, simplex={"reachable": False}) for n in "de"]
    said = figure(comparison.page(crowded), "uniformity-tolerance")
    assert {row["says"] for row in rows(said.spec) if "says" in row} == {"even over the sphere"}


def test_many_recipes_are_told_apart_by_colour_with_shape_or_dash(tmp_path: Path) -> None:
    made = [write_run(tmp_path / str(i), name="x", encoder="e", method={"k1": i}) for i in range(20)]
    page = comparison.page(made)

    def scales(name: str, channel: str) -> list[Any]:
        layers = figure(page, name).spec
        found = [layer["encoding"] for layer in [*layers.get("layer", []), layers] if "encoding" in layer]
        (encoding,) = [one for one in found if channel in one]
        assert encoding[channel]["legend"] == encoding["color"]["legend"], "one legend"
        return list(
            zip(encoding["color"]["scale"]["range"], map(str, encoding[channel]["scale"]["range"]), strict=True)
        )

    for name, channel in (("loss", "strokeDash"), ("monitor-knn20", "strokeDash"), ("classes", "shape")):
        pairs = scales(name, channel)
        assert len(set(pairs)) == 20
        assert {colour for colour, _ in pairs} == set(COLOURS)
    assert len(set(scales("uniformity-tolerance", "shape"))) == 20


def test_every_chart_can_be_a_file(tmp_path: Path) -> None:
    made = [write_run(tmp_path / name, name=name, right=[True] * 29 + [name == "a"]) for name in "ab"]
    found = figures(comparison.page(made))
    assert len(found) == len({one.name for one in found}) >= 6
    for one in found:
        assert b"<path" in draw(one.spec, "svg"), one.name
