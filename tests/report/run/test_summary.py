"""How a run ended, its health, and how to make it again."""

from __future__ import annotations

from pathlib import Path

from kontrast.files import write_json
from kontrast.report.page import Fold, Numbers, Table, Text
from kontrast.report.records import read
from kontrast.report.run import subtitle
from kontrast.report.run.summary import chance, health, reproduce, result, typed_command
from kontrast.runs import Measure
from tests.report import made


def test_numbers_carry_their_protocol(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    made_of = result(run).parts
    (cards,) = [part for part in made_of if isinstance(part, Numbers)]
    accuracy = cards.items[0]
    right = 100 * (run.results[0].value or 0.0)
    assert accuracy.value == f"{right:.1f} ± 5.0 %"
    assert accuracy.about == "kNN, k = 20; 24 test rows"
    assert {card.label for card in cards.items} >= {"Training loss", "Uniformity", "Tolerance", "Time"}
    loss = next(card for card in cards.items if card.label == "Training loss")
    assert (loss.value, loss.about) == (
        "3.000",
        "mean of the last steps logged, to step 40; chance 5.50, cannot be below 2.50",
    )
    assert isinstance(made_of[0], Text)
    assert "guessing the most frequent would find 33.3 %" in made_of[0].text


def test_guessing_names_the_largest_class(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    record = {"name": "knn20", "protocol": "kNN", "value": 0.5, "test_rows": 10, "split": "test"}
    write_json(run / "result.json", {"results": [{**record, "confusion": [[7, 0], [3, 0]]}]})
    assert chance(read(run)) == 0.7


def test_how_a_run_ended(tmp_path: Path) -> None:
    failed = made.folder(tmp_path / "a", status="failed", error="NonFiniteLoss: nan", step=7)
    first = result(read(failed)).parts[0]
    assert isinstance(first, Text)
    assert (first.kind, first.text) == ("bad", "This run failed at step 7 of 40.\nNonFiniteLoss: nan")
    stopped = result(read(made.folder(tmp_path / "b", status="interrupted"))).parts[0]
    assert isinstance(stopped, Text)
    assert stopped.text.startswith("This run was interrupted at step 40 of 40; the page shows what there is.")
    begun = made.folder(tmp_path / "c", status="training")
    killed = result(read(begun)).parts[0]
    assert isinstance(killed, Text)
    assert killed.text.startswith("This run is training, or was killed while it was at step 40 of 40;")
    for name in ("metrics.jsonl", "analysis.npz", "analysis.json"):
        (begun / name).unlink()
    assert [type(part) for part in result(read(begun)).parts] == [Text, Numbers]


def test_without_labels_the_reason_is_told(tmp_path: Path) -> None:
    parts = result(read(made.folder(tmp_path / "run", labels=False))).parts
    said = [part.text for part in parts if isinstance(part, Text)]
    assert said == ["Not evaluated: the training rows have no labels."]


def test_the_rank_says_what_it_is_about(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    rank_of = Measure(name="effective rank", value=3.5, theory=16.0, meaning="all directions alike")
    run.geometry.features.append(rank_of)
    (cards,) = [part for part in result(run).parts if isinstance(part, Numbers)]
    rank = next(card for card in cards.items if card.label == "Effective rank")
    assert (rank.value, rank.about) == ("3.5", "of the features, about the origin; all directions alike: 16")


def beside_raw(path: Path, value: float, raw: float, other: float = 0.1) -> Text:
    """The first words about a run of kNN and a probe, where raw pixels have kNN alone."""
    folder = made.folder(path)
    record = {"protocol": "as its name says", "test_rows": 10, "split": "test", "confusion": [[7, 0], [3, 0]]}
    named = {"knn20": value, "probe": other, "raw pixels: knn20": raw}
    write_json(folder / "result.json", {"results": [{**record, "name": n, "value": v} for n, v in named.items()]})
    first = result(read(folder)).parts[0]
    assert isinstance(first, Text)
    return first


def test_raw_pixels_are_what_it_is_compared_with(tmp_path: Path) -> None:
    better = beside_raw(tmp_path / "a", 0.8, 0.6, other=0.9)  # the probe is better, and has nothing beside it
    assert better.kind == "plain"
    assert better.text.startswith(
        "The class of 80.0 % of 10 test rows is found by kNN; raw pixels alone, by the same protocol, give 60.0 %."
    )
    assert "guessing" not in better.text


def test_no_better_than_raw_pixels_is_said_first(tmp_path: Path) -> None:
    for i, value in enumerate((0.5, 0.6)):
        worse = beside_raw(tmp_path / str(i), value, 0.6)
        assert worse.kind == "watch"
        assert worse.text.startswith(f"The encoder is no better than raw pixels.\nThe class of {100 * value:.1f} % ")
    (cards,) = [p for p in result(read(tmp_path / "0")).parts if isinstance(p, Numbers)]
    assert [card.label for card in cards.items[:3]] == ["kNN accuracy", "Linear probe", "Raw pixels: kNN accuracy"]


def test_a_pretrained_start_stands_beside_the_end(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    record = {"name": "knn20", "protocol": "kNN, k = 20", "value": 0.5, "error": 0.1, "test_rows": 10, "split": "test"}
    start = {"result": {**record, "value": 0.7}, "difference": {"value": -0.2, "error": 0.05}}
    write_json(run / "result.json", {"results": [record], "start": start})
    (cards,) = [part for part in result(read(run)).parts if isinstance(part, Numbers)]
    before = cards.items[1]
    assert (before.label, before.value) == ("Before training: kNN accuracy", "70.0 ± 10.0 %")
    assert before.about.endswith("training changed it by −20.0 ± 5.0 points on the same rows")
    write_json(run / "result.json", {"results": [record], "start": {"result": {**record, "value": "0.7"}}})
    damaged = read(run)
    assert any("start" in message for message in damaged.messages)
    (cards,) = [part for part in result(damaged).parts if isinstance(part, Numbers)]
    assert "Before training: kNN accuracy" not in {card.label for card in cards.items}


def finding(status: str) -> dict[str, str]:
    return {"rule": status, "status": status, "title": f"is {status}", "evidence": "because", "advice": "do this"}


def test_problems_first_and_what_is_ok_folded(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    states = ("ok", "warning", "unknown", "problem", "ok")
    write_json(run / "doctor.json", {"findings": [finding(status) for status in states]})
    problem, warning, rest, *_ = health(read(run)).parts
    assert problem == Text("✗ Is problem\nbecause\nWhat to do: do this", "bad")
    assert warning == Text("! Is warning\nbecause\nWhat to do: do this", "watch")
    assert isinstance(rest, Fold)
    assert rest.title == "2 ok, 1 unknown"
    (table,) = rest.parts
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == ["unknown", "ok", "ok"]


def test_a_healthy_run_and_one_that_nobody_looked_at(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    first = health(read(run)).parts[0]
    assert isinstance(first, Text)
    assert "has not been examined yet: kontrast doctor" in first.text
    write_json(run / "doctor.json", {"findings": [finding("ok")]})
    assert health(read(run)).parts[0] == Text("No problem found: 1 of 1 rules are ok.", "good")


def test_what_next_is_for_finished_runs(tmp_path: Path) -> None:
    done = health(read(made.folder(tmp_path / "runs" / "a"))).parts[-1]
    assert isinstance(done, Text)
    assert "kontrast train runs/a seed=1" in done.text
    begun = health(read(made.folder(tmp_path / "runs" / "b", status="training"))).parts
    assert len(begun) == 1


def test_the_command_and_what_was_typed(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "my runs" / "by-hand-1"))
    codes = [part.text for part in reproduce(run).parts if isinstance(part, Text) and part.kind == "code"]
    assert codes == ["kontrast train 'my runs/by-hand-1' --out again", "kontrast train 'by hand.yaml'"]
    run.state.command[:] = ["__main__.py", "-q", "tests"]
    assert typed_command(run) == "", "another package started with -m"


def test_the_line_under_the_title_says_what_was_frozen_and_averaged(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    plain = (run / "recipe.yaml").read_text()
    assert "encoder small-resnet · seed 3" in subtitle(read(run))
    for settings, words in (
        ("freeze: 1, average: 0.9", "encoder small-resnet, first stage frozen, averaged weights · seed 3"),
        ("freeze: 2", "encoder small-resnet, first 2 stages frozen · seed 3"),
        ("freeze: all", "encoder small-resnet, frozen · seed 3"),
    ):
        (run / "recipe.yaml").write_text(plain.replace("train:\n  epochs: 1\n", f"train: {{epochs: 1, {settings}}}\n"))
        assert words in subtitle(read(run))


def test_the_recipe_is_whole_and_the_machine_s_folder_is_not_told(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    parts = reproduce(read(path)).parts
    (fold,) = [part for part in parts if isinstance(part, Fold)]
    assert fold.parts == [Text((path / "recipe.yaml").read_text().rstrip(), "code")]
    assert "somebody" not in repr(parts)
