"""Tables: the summary has every number and folder; each rendering shows it, and takes nothing for markup."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from csv import DictReader
from typing import Any

import pytest
from rich.console import Console

from kontrast.experiments import claims, tables
from kontrast.experiments.experiment import Chart, Experiment, Measure, Preset, Row
from kontrast.files import dump
from kontrast.intervals import interval

TAUS = (0.1, 0.3, 1.0)
PAPER = {("ordinary", 0.1): 83.27}


def measure(name: str, digits: int = 1) -> Measure:
    return Measure(name, f"{name} (%)", lambda folder: None, digits)


def experiment(**changes: Any) -> Experiment:
    parts: dict[str, Any] = {
        "name": "demo-table",
        "title": "A demonstration",
        "source": "nobody",
        "axes": {"data": ("cifar10", "svhn"), "loss": ("ordinary", "hard"), "temperature": TAUS},
        "presets": {"cpu": Preset("small", lambda at: pytest.fail("made"), axes={"data": ("fashion-mini",)})},
        "measures": [measure("linear")],
        "rows": "temperature",
        "published": lambda at, measure: PAPER.get((at["loss"], at["temperature"])) if measure == "linear" else None,
        "claims": [claims.higher("hard beats ordinary", "linear", {"loss": "hard"}, {"loss": "ordinary"})],
    }
    return Experiment(**{**parts, **changes})


def rows(seeds: int = 3, data: Sequence[str] = ("fashion-mini",), names: Sequence[str] = ("linear",)) -> list[Row]:
    return [
        Row(
            {"data": d, "loss": loss, "temperature": tau, "seed": seed},
            f"{d}-{loss}-{tau}-{seed}",
            "done",
            dict.fromkeys(names, 80 + tau + 0.5 * seed + (loss == "hard") * (1 + 0.1 * seed)),
            seconds=60.0,
        )
        for seed in range(seeds)
        for d in data
        for loss in ("ordinary", "hard")
        for tau in TAUS
    ]


def changed(found: list[Row], where: dict[str, Any], **changes: Any) -> list[Row]:
    hit = [all(row.at[k] == v for k, v in where.items()) for row in found]
    assert any(hit)
    return [Row(**{**vars(row), **changes}) if h else row for row, h in zip(found, hit, strict=True)]


def printed(made: dict[str, Any], **options: Any) -> str:
    console = Console(file=io.StringIO(), width=160, force_terminal=True, color_system=None)
    console.print(tables.terminal(made, **options))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def every(made: dict[str, Any]) -> dict[str, str]:
    texts = {"terminal": printed(made), "csv": tables.csv(made), "markdown": tables.markdown(made)}
    return {**texts, "latex": tables.latex(made)}


def test_a_cell_has_the_papers_value_ours_and_its_folders() -> None:
    made = tables.summary(experiment(), rows(), preset="cpu", settings=("data.limit=9",))
    place = made["places"][0]
    expected = interval([80.1, 80.6, 81.1])
    assert place["at"] == {"data": "fashion-mini", "loss": "ordinary", "temperature": 0.1}
    cell = place["cells"]["linear"]
    assert (cell["mean"], cell["half"], cell["n"]) == (expected.mean, expected.half, 3)
    assert cell["difference"] == expected.mean - 83.27
    assert [run["folder"] for run in place["runs"]] == [f"fashion-mini-ordinary-0.1-{seed}" for seed in range(3)]
    assert made["axes"] == {"data": ["fashion-mini"], "loss": ["ordinary", "hard"], "temperature": list(TAUS)}
    assert (made["about"], made["status"], made["seconds"]) == ("small", {"done": 18}, 18 * 60.0)
    assert made["claims"][0]["findings"][0]["verdict"] == claims.HOLDS


def test_all_renderings_show_it_and_the_claims() -> None:
    texts = every(tables.summary(experiment(), rows(), preset="cpu"))
    for kind in ("terminal", "markdown"):
        assert "80.6 ± 1.2 (n = 3)" in texts[kind]
        assert "paper 83.3, difference -2.7" in texts[kind]
        assert "hard beats ordinary" in texts[kind]
        assert "holds" in texts[kind]
    assert r"80.6 $\pm$ 1.2 (n = 3)" in texts["latex"]
    assert r"\emph{holds}" in texts["latex"]
    assert "data = fashion-mini" in texts["markdown"], "an axis of one value is in the caption"
    for kind in ("csv", "markdown"):
        assert all(row.folder in texts[kind] for row in rows())
    assert "18 runs" in texts["terminal"]
    assert all(
        row.folder in printed(tables.summary(experiment(), rows(), preset="cpu"), show_folders=True) for row in rows()
    )


def test_json_is_the_one_source() -> None:
    made = tables.summary(experiment(), changed(rows(), {"seed": 1}, status="failed", error="E"), preset="cpu")
    again = json.loads(dump(made))
    assert again == made
    assert every(again) == every(made)


def test_csv_has_a_line_for_each_cell() -> None:
    made = tables.summary(
        experiment(measures=[measure("linear"), measure("knn")]), rows(names=("linear", "knn")), preset="cpu"
    )
    lines = list(DictReader(io.StringIO(tables.csv(made))))
    assert len(lines) == 2 * 3 * 2
    first = lines[0]
    assert (first["loss"], first["temperature"], first["measure"], first["n"]) == ("ordinary", "0.1", "linear", "3")
    assert float(first["paper"]) == 83.27
    assert float(first["half"]) == interval([80.1, 80.6, 81.1]).half
    assert first["runs"].split("; ") == [f"fashion-mini-ordinary-0.1-{seed}" for seed in range(3)]
    assert lines[1]["paper"] == ""


def test_what_failed_or_is_missing_is_no_number() -> None:
    at = {"loss": "ordinary", "temperature": 0.1}
    found = changed(rows(), at, status="failed", values={}, error="RuntimeError: no memory\nleft")
    found = changed(found, {"loss": "hard", "temperature": 0.1}, status="missing", values={})
    found = changed(found, {"loss": "hard", "temperature": 0.3, "seed": 2}, status="failed", values={}, error="E")
    made = tables.summary(experiment(), found, preset="cpu")
    assert made["places"][0]["cells"]["linear"] | {"paper": 0} == {
        "paper": 0, "mean": None, "half": None, "n": 0, "difference": None, "paper_data": "", "paper_half": None,
        "censored": 0,
    }  # fmt: skip
    texts = every(made)
    for kind in ("terminal", "markdown", "latex"):
        assert "failed: RuntimeError: no memory left (3 runs)" in texts[kind]
        assert "missing" in texts[kind]
        assert "(n = 2; 1 failed)" in texts[kind]
    assert made["claims"][0]["findings"][0]["verdict"] == claims.OPEN
    line = next(DictReader(io.StringIO(texts["csv"])))
    assert (line["mean"], line["status"], line["error"]) == ("", "failed", "RuntimeError: no memory left")
    assert "fashion-mini-hard-0.1-0 (missing)" in tables.markdown(made).replace("\\", "")


def test_a_censored_value_is_a_lower_bound() -> None:
    at = {"loss": "ordinary", "temperature": 0.1}
    found = changed(rows(), at, values={"linear": 3000.0, "censored": 1.0})
    found = changed(found, {"loss": "hard", "temperature": 0.1, "seed": 0}, values={"linear": 3000.0, "censored": 1.0})
    steps = experiment(measures=[measure("linear", 0), measure("censored")])
    made = tables.summary(steps, found, preset="cpu")
    assert [m["name"] for m in made["measures"]] == ["linear"], "the mark is no measure"
    cell = made["places"][0]["cells"]["linear"]
    assert (cell["mean"], cell["half"], cell["difference"], cell["censored"]) == (3000.0, None, None, 3)
    assert "> 3000 (n = 3)" in printed(made)
    assert "&gt; 3000 (n = 3)" in tables.markdown(made)
    assert r"\textgreater{} 3000 (n = 3)" in tables.latex(made)
    assert re.search(r"> 1055 \(n = 3; 1 censored\)", printed(made))  # (3000 + 81.6 + 82.3 …)/3


def test_one_seed_shows_no_interval() -> None:
    texts = every(tables.summary(experiment(), rows(seeds=1), preset="cpu"))
    assert "80.1 (n = 1)" in texts["markdown"]
    assert "±" not in texts["markdown"].partition("(n = 1)")[2].partition("## Claims")[0]


@pytest.mark.parametrize(
    ("sets", "names", "expected"),
    [
        (("a",), ("linear",), [2]),
        (("a", "b"), ("linear", "knn"), [8]),
        (("a", "b"), ("linear", "knn", "mean"), [4, 4, 4]),  # twelve columns: a table for each measure
        (("a", "b", "c", "d", "e"), ("linear",), [2] * 5),  # ten: one for each set
    ],
)
def test_many_columns_become_several_tables(sets: Sequence[str], names: Sequence[str], expected: list[int]) -> None:
    what = experiment(axes={"data": sets, "loss": (), "temperature": TAUS}, measures=[measure(n) for n in names])
    made = tables.summary(what, rows(data=sets, names=names), preset="cpu")
    found = tables.latex(made)
    assert [len(columns) for columns in re.findall(r"\\begin\{tabular\}\{l(r+)\}", found)] == expected
    assert found.count(r"\toprule") == len(expected)
    assert len(set(re.findall(r"\\label\{(.*?)\}", found))) == len(expected)
    assert tables.markdown(made).count("(n = 3)") >= len(made["places"]) * len(names), "no cell is lost"


def test_a_grid_with_holes_has_empty_cells() -> None:
    found = [row for row in rows() if not (row.at["loss"] == "hard" and row.at["temperature"] == 1.0)]
    lines = tables.markdown(tables.summary(experiment(claims=()), found, preset="cpu")).splitlines()
    [last] = [line for line in lines if line.startswith("| 1.0 ")]
    assert last == "| 1.0 | 81.5 ± 1.2 (n = 3) |  |"


def test_the_users_own_values_follow_the_plans() -> None:
    made = tables.summary(experiment(), rows(data=("photos", "fashion-mini")), preset="cpu")
    assert made["axes"]["data"] == ["fashion-mini", "photos"]
    assert made["places"][0]["at"]["data"] == "fashion-mini"


HOSTILE = "[red]a|b[/red] <script>*x*</script> _$50%_ \\cmd{#} ~^& `c` \x1b[31m"


def test_nothing_is_taken_for_markup() -> None:
    found = [Row({**row.at, "data": HOSTILE}, f"{HOSTILE}-{k}", "done", row.values) for k, row in enumerate(rows())]
    at = {"loss": "hard", "temperature": 0.1}
    found = changed(found, at, status="failed", values={}, error=f"=cmd() {HOSTILE}")
    what = experiment(title=HOSTILE)
    texts = every(tables.summary(what, found, preset="cpu"))
    assert all("\x1b[31m" not in text for text in texts.values())
    assert "[red]a|b[/red] <script>*x*</script>" in texts["terminal"], "shown as it is"
    page = texts["markdown"]
    assert "<script>" not in page
    assert not re.search(r"(?<!\\)[_$`~]", re.sub(r"<br>|&\w+;", "", page)), "every such letter is escaped"
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {4}, "no cell is split"
    tex = "\n".join(line for line in texts["latex"].splitlines() if not line.startswith("% "))  # but comments
    plain = re.sub(
        r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|ldots)\{\}", "", tex
    )
    assert not re.search(r"(?<!\\)[#%~^]", plain)
    assert r"\cmd" not in tex
    assert not re.search(r"\\\\\s*[\[*]", tex), "a line that begins so would be an option of the break before it"
    lines = list(DictReader(io.StringIO(texts["csv"])))
    assert len(lines) == 6
    assert [line["error"][:5] for line in lines if line["error"]] == ["'=cmd"]


def test_braces_of_latex_match() -> None:
    tex = tables.latex(tables.summary(experiment(title=HOSTILE), rows(), preset="cpu"))
    depth = 0
    for letter in re.sub(r"\\[\\{}]", "", tex):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"\\begin", tex)) == len(re.findall(r"\\end", tex))


def test_nothing_run_yet() -> None:
    nothing = changed(rows(), {}, status="missing", values={})
    texts = every(tables.summary(experiment(charts=[Chart("a", "b", "line", "x", "y")]), nothing, preset="cpu"))
    assert "missing" in texts["markdown"]
    assert "not resolved at this scale" in texts["terminal"]
    assert every(tables.summary(experiment(), [], preset="cpu"))


def test_errors() -> None:
    with pytest.raises(ValueError, match="no preset 'gpu'"):
        tables.summary(experiment(), rows(), preset="gpu")
    with pytest.raises(ValueError, match=r"rows=tau: must be an axis of demo-table\. Use one of data"):
        tables.summary(experiment(rows="tau"), rows(), preset="cpu")


def test_settings_are_shown() -> None:
    for settings in (("data.limit=9", "seed=1"), {"data.limit": 9, "seed": 1}, "data.limit=9 seed=1"):
        made = tables.summary(experiment(), rows(), preset="cpu", settings=settings)
        assert "Settings: data.limit=9 seed=1" in printed(made)
    assert "Settings" not in printed(tables.summary(experiment(), rows(), preset="cpu"))


def test_how_it_was_made_is_shown() -> None:
    made = tables.summary(experiment(), rows(), preset="cpu")
    made["made"] = {"version": "0.1.0", "commit": "abc123", "command": "kontrast reproduce demo --seeds 3"}
    assert "Command: kontrast reproduce demo --seeds 3\nkontrast 0.1.0, commit abc123" in re.sub(
        " +\n", "\n", printed(made)
    )


def test_on_a_part_of_the_papers_set_its_value_is_shown_without_a_difference() -> None:
    made = tables.summary(experiment(), rows(data=("cifar10-12k",)), preset="cpu")
    cell = made["places"][0]["cells"]["linear"]
    assert (cell["paper_data"], cell["difference"]) == ("cifar10", None)
    for kind in ("terminal", "markdown", "latex"):
        assert f"paper on cifar10 {cell['paper']:.1f}" in every(made)[kind]
        assert ", difference" not in every(made)[kind]
    whole = tables.summary(experiment(), rows(data=("cifar10",)), preset="cpu")["places"][0]["cells"]["linear"]
    assert (whole["paper_data"], whole["difference"]) == ("", whole["mean"] - whole["paper"])


def test_baselines_name_their_protocols_in_the_measures_order() -> None:
    """A ledger's line has them sorted by name."""
    measures = [Measure(name, name, lambda folder: 1.0, protocols=(name,)) for name in ("wang-liu", "knn20")]
    values = {"error:knn20": 0.5, "knn20": 1.0, "other": 3.0, "wang-liu": 2.0}
    [found] = tables.baselines(experiment(measures=measures), ["raw pixels"], [Row({"seed": 0}, "a", "done", values)])
    assert list(found["titles"].items()) == [("wang-liu", "wang-liu"), ("knn20", "knn20"), ("other", "other (%)")]
