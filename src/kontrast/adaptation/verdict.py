"""The verdict: which encoder ships, and the sentence that says so.

    better             kNN (the first measure) is better by the paired statistics, no other measure is worse: adapted
    worse elsewhere    kNN is better, another measure is worse: frozen
    not better         frozen
    diverged           the loss was no number: frozen
    not trained        the time ran out before an epoch ended: frozen
    not judged         there are no labels: frozen, unless the adapted one is accepted unseen (``accepted``)

One measure, named before anything is measured, decides, so that three measures are not three chances. The others can
only forbid, which ships less and never more.
"""

from __future__ import annotations

from collections.abc import Mapping

from kontrast.adaptation.comparison import Comparison
from kontrast.runs import MeasureVerdict, Verdict

MEASURES = {
    "knn20": "kNN (k = 20)",
    "logistic": "linear classifier",
    "retrieval": "nearest training row of the same class",
}
"""What is measured, in words; the first decides."""
WORDS = {"knn20": "kNN", "logistic": "the linear classifier", "retrieval": "retrieval"}


def judge(comparisons: Mapping[str, Comparison], *, rows: str = "images") -> Verdict:
    """The verdict of comparisons of the frozen encoder (before) with the adapted one (after).

    Args:
        comparisons: By the measure's name; the first one decides.
        rows: What the rows are.

    Returns:
        The verdict, without epoch, rows and protocol.

    Raises:
        ValueError: There is no comparison.

    >>> import torch
    >>> from kontrast.adaptation.comparison import compare
    >>> frozen = torch.arange(2000) % 100 < 93
    >>> adapted = frozen & (torch.arange(2000) % 250 > 0)
    >>> print(judge({"knn20": compare(frozen, adapted)}))
    kNN: adapted 92.6 against frozen 93.0, −0.4 ± 0.3 (paired bootstrap over 2,000 images): kept the frozen encoder; ...
    """
    if not comparisons:
        raise ValueError("comparisons={}: must have at least one. Without labels, use `without_labels`")
    name, first = next(iter(comparisons.items()))
    worse = next((other for other in list(comparisons)[1:] if comparisons[other].is_worse), None)
    visible = f"{100 * first.smallest:.1f} is the smallest difference that these rows could have shown (power 80 %)"
    if first.smallest > 1:
        visible = f"so few {rows} could not have shown any difference"
    text = (
        f"{WORDS.get(name, name)}: adapted {100 * first.after:.1f} against frozen {100 * first.before:.1f}, "
        f"{_change(first)} (paired bootstrap over {first.rows:,} {rows}): "
    )
    text = text[0].upper() + text[1:] if text.startswith("the ") else text
    measures = [_record(key, comparison) for key, comparison in comparisons.items()]
    if first.is_better and worse is None:
        sentence = f"{text}shipped the adapted encoder; {visible}"
        return Verdict(shipped="adapted", status="better", sentence=sentence, measures=measures)
    if first.is_better:
        assert worse is not None
        why = f"by {WORDS.get(worse, worse)} it is worse, {_change(comparisons[worse])}"
        sentence = f"{text}kept the frozen encoder, as {why}"
        return Verdict(shipped="frozen", status="worse elsewhere", sentence=sentence, measures=measures)
    sentence = f"{text}kept the frozen encoder; {visible}"
    return Verdict(shipped="frozen", status="not better", sentence=sentence, measures=measures)


def without_labels(reason: str, *, accept: bool) -> Verdict:
    """The verdict where nothing can be judged.

    Args:
        reason: Why not: ``the training rows have no labels``.
        accept: Whether the adapted encoder ships all the same.

    Returns:
        The verdict.

    >>> print(without_labels("the training rows have no labels", accept=False))
    not judged, as the training rows have no labels: kept the frozen encoder (--accept ships the adapted one)
    """
    if accept:
        sentence = f"not judged, as {reason}: shipped the adapted encoder, as it was accepted unseen"
        return Verdict(shipped="adapted", status="accepted", sentence=sentence)
    sentence = f"not judged, as {reason}: kept the frozen encoder (--accept ships the adapted one)"
    return Verdict(shipped="frozen", status="not judged", sentence=sentence)


def after_divergence(error: str) -> Verdict:
    """The verdict where the loss was no number.

    >>> print(after_divergence("the loss is nan at step 7 (learning rate 30). Likely the rate is too high"))
    the training diverged (the loss is nan at step 7 (learning rate 30)): kept the frozen encoder
    """
    sentence = f"the training diverged ({error.partition('. ')[0]}): kept the frozen encoder"
    return Verdict(shipped="frozen", status="diverged", sentence=sentence)


def without_epoch() -> Verdict:
    """The verdict where the time ran out before the encoder was measured for the first time.

    >>> without_epoch().status
    'not trained'
    """
    sentence = "the time ran out before the first epoch was measured: kept the frozen encoder. Use more --minutes"
    return Verdict(shipped="frozen", status="not trained", sentence=sentence)


def _change(comparison: Comparison) -> str:
    return f"{100 * comparison.difference:+.1f} ± {100 * comparison.half:.1f}".replace("-", "−")


def _record(name: str, comparison: Comparison) -> MeasureVerdict:
    return MeasureVerdict(
        name=name,
        title=MEASURES.get(name, name),
        frozen=comparison.before,
        adapted=comparison.after,
        difference=comparison.difference,
        low=comparison.low,
        high=comparison.high,
        won=comparison.won,
        lost=comparison.lost,
        rows=comparison.rows,
        p=comparison.p,
        smallest=comparison.smallest,
    )
