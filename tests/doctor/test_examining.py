"""The whole examination: healthy runs are told so, every disease is found in the run that was made to have it."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import kontrast
from kontrast import doctor, recipes
from kontrast.doctor import rules
from kontrast.doctor.examining import examine
from kontrast.doctor.record import Record, collect_recipe
from kontrast.doctor.rules import RULES, Rule
from kontrast.runs import Finding
from tests.doctor import patients


@pytest.mark.parametrize("name", patients.HEALTHY)
def test_nothing_is_ill_or_odd_in_a_healthy_run(name: str) -> None:
    found = patients.findings(name)
    assert {rule: f.evidence for rule, f in found.items() if f.status != "ok"} == {}
    assert not any(f.advice for f in found.values())


@pytest.mark.parametrize(("name", "disease"), patients.DISEASES.items())
def test_each_disease_is_found_where_it_was_made(name: str, disease: str) -> None:
    found = patients.findings(name)[disease]
    assert found.status == "problem", found
    assert found.evidence
    assert found.advice


def test_every_rule_has_a_run_with_its_disease() -> None:
    also = {
        "batch-too-small",
        "loss-at-chance",
        "refused",
        "too-short",
    }  # runs with another one too; recipes; never ill
    without = set(doctor.names()) - {*patients.DISEASES.values(), *also}
    assert not without, f"{without}: add a run that has the sign to RECIPES and DISEASES of tests/doctor/patients.py"
    assert {*patients.DISEASES.values(), *also} <= set(doctor.names())


def test_the_ill_are_told_first_and_a_failure_before_all() -> None:
    found = doctor.examine_run(patients.run("diverged"))
    assert found[0].rule == "failed-run"
    statuses = [f.status for f in found]
    assert statuses == sorted(statuses, key=("problem", "warning", "unknown", "ok").index)
    unknown = [f for f in found if f.status == "unknown"]
    assert any("analysis.npz has no features" in f.evidence for f in unknown), "what is missing is said"


@pytest.mark.parametrize("name", [name for name in recipes.names() if name.endswith("fashion-mini")])
def test_our_own_small_recipes_are_well(name: str) -> None:
    found = doctor.examine_recipe(recipes.find(name))
    assert [f for f in found if f.status in ("problem", "unknown")] == []


def test_no_published_recipe_is_ill() -> None:
    # Without their data, which need not be here: what depends on class sizes is unknown.
    for name in recipes.names():
        record = dataclasses.replace(collect_recipe(recipes.find(name)), open_data=None, make_job=None)
        assert [f for f in examine(record) if f.status == "problem"] == [], name


def test_doctor_json_is_what_was_found(tmp_path: Path) -> None:
    run = patients.edited("hot", tmp_path / "run")
    file = doctor.write(run)
    assert file == run / "doctor.json"
    record = json.loads(file.read_text())
    assert record["kontrast"] == kontrast.__version__
    assert [Finding.model_validate(f) for f in record["findings"]] == doctor.examine_run(run)


def test_features_with_and_without_labels() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 6
    x = rng.normal(size=(6, 32))[labels] + 0.5 * rng.normal(size=(600, 32))
    with_labels = {f.rule: f.status for f in doctor.examine_features(x, labels, temperature=0.1)}
    assert set(with_labels.values()) == {"ok", "unknown"}
    assert [rule for rule, status in with_labels.items() if status == "unknown"] == ["train-test-gap"]
    without = {f.rule: f.status for f in doctor.examine_features(torch.tensor(x))}
    assert without["label-noise"] == without["temperature-low"] == "unknown"
    assert "class-imbalance" not in without, "without labels there are no classes"


def test_a_rule_that_breaks_is_unknown_and_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Rule, record: Record) -> Finding:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(RULES["small_queue"], "examine", broken)
    found = {f.rule: f for f in doctor.examine_recipe(recipes.find("moco-fashion-mini"))}
    assert found["small-queue"].status == "unknown"
    assert "ZeroDivisionError: division by zero" in found["small-queue"].evidence
    assert found["stale-queue"].status == "ok"


GOOD = """from kontrast.doctor.rule import Finding, Record, Rule

class Hubs(Rule):
    patients = ("features",)
    title = "hubs"

    def examine(self, record: Record) -> Finding | None:
        return self.ok("no hubs")
"""


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        (
            GOOD.replace('patients = ("features",)', ""),
            r"TypeError: Hubs\.patients=None: must be a tuple of one or more",
        ),
        (GOOD.replace('("features",)', '"features"'), r"Hubs\.patients='features': must be a tuple"),
        (GOOD.replace('("features",)', '("feature",)'), r"of 'run', 'features', 'recipe'"),
        (GOOD.replace('title = "hubs"', ""), r"Hubs\.title=None: must be a few words"),
        (GOOD.replace("examine", "judge"), "Hubs must define examine"),
        (GOOD.replace('self.ok("no hubs")', "True"), "examine must return a Finding or None, got a bool"),
        (
            GOOD.replace("class Hubs(Rule):", "class Hubs(Rule)"),
            r"hubs cannot be used: .*hubs\.py is no Python, line 3",
        ),
        (f"import no_such_module\n{GOOD}", "ModuleNotFoundError"),
        ("", "must declare exactly one public class"),
    ],
)
def test_a_rule_that_is_none_is_unknown_and_hides_nothing(
    text: str, evidence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.ones(50, 8)
    others = [finding.rule for finding in doctor.examine_features(x)]
    (tmp_path / "hubs.py").write_text(text)
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{rules.__name__}.hubs", raising=False)
    findings = {finding.rule: finding for finding in doctor.examine_features(x)}
    assert findings["hubs"].status == "unknown"
    assert re.search(evidence, findings["hubs"].evidence), findings["hubs"].evidence
    assert sorted(findings) == sorted([*others, "hubs"])


def test_nobody_elses_random_state_is_touched() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    doctor.examine_features(torch.randn(300, 8, generator=torch.Generator().manual_seed(0)), temperature=0.1)
    assert torch.equal(torch.get_rng_state(), before)
