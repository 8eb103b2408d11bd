"""The models of the files: strict types, null is missing, no NaN."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from kontrast.runs.reading import fit
from kontrast.runs.schemas import METRICS_LINE, Examination, Finding, ModelCard, ProtocolResult, Result, State, Summary


def test_null_is_missing_and_what_json_lacks_is_none() -> None:
    assert State.model_validate({"versions": None, "step": None}) == State()
    assert State.model_validate({"seconds": float("nan")}).seconds is None
    assert METRICS_LINE.validate_python({"step": 3, "loss": float("inf")}) == {"step": 3, "loss": None}


@pytest.mark.parametrize("value", [True, "3", 1e300, [1]])
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(ValidationError, match="must be a number"):
        METRICS_LINE.validate_python({"loss": value})


def test_numbers_keep_their_type() -> None:
    line = METRICS_LINE.validate_python({"step": 3, "loss": 2.0})
    assert [type(value) for value in line.values()] == [int, float]


@pytest.mark.parametrize("rows", [[[1, 2]], [[1, -1], [0, 1]], [[1, 2], [3, None]], "x"])
def test_a_confusion_is_a_square_of_counts(rows: Any) -> None:
    with pytest.raises(ValidationError):
        ProtocolResult(name="knn20", protocol="k", confusion=rows)


@pytest.mark.parametrize(
    "given",
    [{"kind": "image", "shape": [3, 32]}, {"kind": "vector", "shape": [0]}, {"kind": "sound", "shape": [1]}],
)
def test_the_input_of_a_model_has_a_shape_of_its_kind(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ModelCard.model_validate({"encoder": {"name": "mlp"}, "input": {**given, "mean": [0.0], "std": [1.0]}})


def test_a_task_keeps_keys_of_its_own() -> None:
    assert Result.model_validate({"radius": 1.5}).model_extra == {"radius": 1.5}


def test_a_summary_needs_its_places() -> None:
    with pytest.raises(ValidationError, match="places"):
        Summary.model_validate({"experiment": "wl-table-1"})


def test_the_words_of_old_findings_are_read() -> None:
    """doctor.json of kontrast 0.1 said ill, watch and healthy, disease and cure."""
    old = {"rule": "small-queue", "status": "ill", "disease": "queue too small", "evidence": "seen", "cure": "do"}
    now = Finding(rule="small-queue", status="problem", title="queue too small", evidence="seen", advice="do")
    assert Finding.model_validate(old) == now == Finding.model_validate(now.model_dump())
    words = [Finding.model_validate({"status": status}).status for status in ("watch", "healthy", "unknown")]
    assert words == ["warning", "ok", "unknown"]
    messages: list[str] = []
    examination = fit(Examination, {"findings": [old, {**old, "status": "strange"}]}, "doctor.json", messages)
    assert examination is not None
    assert [finding.status for finding in examination.findings] == ["problem", "unknown"]
    assert "findings.1.status='strange'" in messages[0]
