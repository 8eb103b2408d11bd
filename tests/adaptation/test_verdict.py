"""The verdict's words: one measure decides, the others can only forbid."""

from __future__ import annotations

import pytest

from kontrast.adaptation.comparison import Comparison
from kontrast.adaptation.verdict import after_divergence, judge, without_epoch, without_labels


def measured(won: int, lost: int, rows: int = 2000, before: float = 0.934) -> Comparison:
    return Comparison(before=before, after=before + (won - lost) / rows, won=won, lost=lost, rows=rows)


def test_the_sentence_of_the_frozen_encoder() -> None:
    verdict = judge({"knn20": measured(16, 22)})
    assert verdict.sentence == (
        "kNN: adapted 93.1 against frozen 93.4, −0.3 ± 0.6 (paired bootstrap over 2,000 images): kept the frozen "
        "encoder; 0.9 is the smallest difference that these rows could have shown (power 80 %)"
    )
    assert (verdict.shipped, verdict.status) == ("frozen", "not better")
    assert str(verdict) == verdict.sentence


def test_a_better_encoder_ships_unless_another_measure_is_worse() -> None:
    better, worse, same = measured(80, 20), measured(10, 60), measured(5, 5)
    assert judge({"knn20": better, "logistic": same}).shipped == "adapted"
    forbidden = judge({"knn20": better, "logistic": same, "retrieval": worse})
    assert (forbidden.shipped, forbidden.status) == ("frozen", "worse elsewhere")
    assert forbidden.sentence.endswith("kept the frozen encoder, as by retrieval it is worse, −2.5 ± 0.8")
    assert judge({"knn20": same, "logistic": better, "retrieval": better}).shipped == "frozen", "the first decides"


def test_what_few_rows_could_have_shown() -> None:
    sentence = judge({"knn20": measured(2, 1, rows=6, before=0.5)}, rows="rows").sentence
    assert sentence.endswith("kept the frozen encoder; so few rows could not have shown any difference")


def test_without_numbers() -> None:
    assert without_labels("there are no labels", accept=False).shipped == "frozen"
    accepted = without_labels("there are no labels", accept=True)
    assert (accepted.shipped, accepted.status) == ("adapted", "accepted")
    assert after_divergence("the loss is inf at step 3 (learning rate 30). Likely …").sentence == (
        "the training diverged (the loss is inf at step 3 (learning rate 30)): kept the frozen encoder"
    )
    assert without_epoch().shipped == "frozen"
    with pytest.raises(ValueError, match="must have at least one"):
        judge({})
