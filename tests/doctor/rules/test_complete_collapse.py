"""Complete collapse: one label for all pulls everything into one point."""

from __future__ import annotations

from pathlib import Path

import torch

from kontrast import doctor
from kontrast.doctor.record import Record
from kontrast.doctor.rules._setup import advise_more_spread
from kontrast.train import resolve
from tests.doctor import patients


def test_supcon_with_one_class_collapses() -> None:
    assert patients.findings("one-class")["complete-collapse"].status == "problem"


def test_healthy_runs_have_spread() -> None:
    assert patients.findings("healthy-self")["complete-collapse"].status == "ok"


def test_before_the_end_the_log_tells(tmp_path: Path) -> None:
    for name, status in (("cold", "problem"), ("healthy-self", "ok")):
        run = patients.edited(name, tmp_path / name)
        (run / "analysis.json").unlink()  # as in a run that has not ended
        found = next(f for f in doctor.examine_run(run) if f.rule == "complete-collapse")
        assert found.status == status
        assert "uniformity" in found.evidence


def test_features_by_their_spread() -> None:
    x = torch.randn(100, 16, generator=torch.Generator().manual_seed(0))
    away = torch.full((16,), 1.0)
    # spread = 16/(16 + 16 c²) for an offset of c in each direction: 1, 0.0025 and 2.5e−5
    for offset, status in ((0.0, "ok"), (20.0, "warning"), (200.0, "problem")):
        assert patients.of_features(x + offset * away)["complete-collapse"].status == status
    assert "all 100 rows are equal" in patients.of_features(torch.ones(100, 16))["complete-collapse"].evidence


def test_the_cure_names_only_what_the_method_has() -> None:
    def cure(method: str, *settings: str) -> str:
        recipe = resolve(patients.small(method).override(settings))
        return advise_more_spread(Record(patient="run", resolved=recipe))

    for method in ("supcon", "simclr", "moco", "ce"):
        assert not any(word in cure(method) for word in ("contrastive_weight", "target_temperature", "k1")), method
    assert "method.k1=500" in cure("tcl")
    assert "method.contrastive_weight=0.5" in cure("sce", "method.contrastive_weight=0")
    assert "contrastive_weight" not in cure("sce"), "it is above 0"
    assert "method.target_temperature=0.05" in cure("ressl", "method.target_temperature=0.1")
    assert "label" in cure("supcon")
    assert "label" not in cure("simclr")
    assert "method.temperature=0.1" in cure("simclr", "method.temperature=0.005")
    assert "method.k1=1e+08" in patients.findings("pulled")["complete-collapse"].advice
