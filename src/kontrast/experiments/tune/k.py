"""How the TCL supplement chooses k1 and k2. (Animesh & Chandraker, supplement section 3.)

    1.  k2 = 1, k1 = 4,000 and 5,000, "almost always working"; with them SupCon, which is k1 = 0, k2 = 1
    2.  "or otherwise with 2 × 10³ and increase it in steps of 2000 till 8 × 10³": if neither beats SupCon
    3.  k1 stays, k2 rises by 0.2 as long as the score does; then 0.1 to either side of the best
    Without labels k1 = 1, because with two positives per anchor a larger one "didn't help much", and only 3 is done.

The choice is the best of everything tried, SupCon included; of equals the first tried.

The supplement remarks that "any value less than 5 × 10³ always gave improvements in performance over SupCon loss".
`check_remark` compares each k1 tried at k2 = 1 with SupCon, seed by seed. The remark

    holds             if every k1 below 5,000 that was tried is resolved above SupCon
    does not hold     if one of them is resolved below it
    is not resolved   otherwise; with one seed always

The procedure itself asks less: there "beats SupCon" means a larger mean.

Deviates: the supplement does not say when its "otherwise" applies, nor when steps are 0.1 and when 0.2; here as above.
It does not say on which rows its values were chosen; here never on the test rows. It has no upper end for k2; here 3,
twice what it uses anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kontrast.experiments.tune.search import (
    NOT_RESOLVED,
    Comparison,
    Ending,
    PartOfSearch,
    Score,
    Search,
    Setting,
    Tried,
    compare_scores,
    is_better,
)

START = (4000.0, 5000.0)
RANGE = (2000.0, 4000.0, 6000.0, 8000.0)
REMARK = 5000.0
STEP, HALF, MOST = 0.2, 0.1, 3.0  # of k2
SUPCON: Setting = {"k1": 0.0, "k2": 1.0}


def choose_k(*, supervised: bool = True) -> Search:
    """Search for k1 and k2 as the supplement does.

    Args:
        supervised: False for data without labels: k1 is 1, and only k2 is searched.

    Returns:
        A search procedure (`kontrast.experiments.tune.search`).

    >>> search = choose_k()
    >>> [setting["k1"] for setting in next(search).settings]
    [0.0, 4000.0, 5000.0]
    """
    tried = Tried()
    if not supervised:
        yield from tried.ask("start", "without labels: k1 = 1, and k2 from 1 upwards", [_at(1.0)])
        yield from _raise_k2(tried, 1.0)
        return _end(tried, 1.0)
    why = "k1 = 4000 and 5000 almost always worked in the paper; SupCon (k1 = 0, k2 = 1) to compare with"
    yield from tried.ask("start", why, [SUPCON, *map(_at, START)])
    if not any(is_better(tried.mean(_at(k1)), tried.mean(SUPCON)) for k1 in START):
        why = "neither k1 = 4000 nor 5000 beat SupCon: 2000 to 8000 in steps of 2000"
        yield from tried.ask("range", why, map(_at, RANGE))
    best = tried.best([_at(k1) for k1 in {*START, *RANGE}])
    if best is None:
        return Ending(tried.best(), "no k1 from 2000 to 8000 has a score: every one failed or was stopped")
    yield from _raise_k2(tried, best["k1"])
    return _end(tried, best["k1"])


def _at(k1: float, k2: float = 1.0) -> Setting:
    return {"k1": k1, "k2": k2}


def _raise_k2(tried: Tried, k1: float) -> PartOfSearch:
    best, higher = 1.0, round(1.0 + STEP, 1)
    while higher <= MOST:
        why = f"k1 = {k1:g} stays: does k2 = {higher:g} improve on {best:g}?"
        yield from tried.ask("k2", why, [_at(k1, higher)])
        if not is_better(tried.mean(_at(k1, higher)), tried.mean(_at(k1, best))):
            break
        best, higher = higher, round(higher + STEP, 1)
    sides = [k2 for k2 in (round(best + HALF, 1), round(best - HALF, 1)) if 1.0 < k2 <= MOST]
    values = " and ".join(f"{k2:g}" for k2 in sides)
    yield from tried.ask("k2, half steps", f"beside the best, k2 = {best:g}: {values}", [_at(k1, k2) for k2 in sides])


def _end(tried: Tried, k1: float) -> Ending:
    best = tried.best([setting for setting, _ in tried.scores if setting["k1"] == k1])
    chosen = tried.best()
    if best is None:
        return Ending(chosen, f"no k2 at k1 = {k1:g} has a score: every one failed or was stopped")
    above = sorted(setting["k2"] for setting, _ in tried.scores if setting["k1"] == k1 and setting["k2"] > best["k2"])
    if above:
        values = ", ".join(f"{k2:g}" for k2 in above)
        why = f"at k1 = {k1:g}, raising k2 above {best['k2']:g} ({values}) did not improve the score"
    else:
        why = f"at k1 = {k1:g}, k2 = {best['k2']:g} is the largest tried, and the score still rose"
    return Ending(chosen, why + ("; but nothing tried beat SupCon" if chosen == SUPCON else ""))


def check_remark(
    tried: Sequence[tuple[Setting, Score]], seeds: Sequence[int]
) -> tuple[str, Mapping[float, Comparison]]:
    """Check the remark that any k1 below 5,000 beat SupCon.

    Args:
        tried: Settings and scores of a search by `choose_k`.
        seeds: The seeds of the scores.

    Returns:
        The verdict as a sentence, and each k1 with k2 = 1 compared with SupCon.

    >>> scores = [(SUPCON, Score((0.8, 0.81))), ({"k1": 4000.0, "k2": 1.0}, Score((0.82, 0.8305)))]
    >>> check_remark(scores, [0, 1])[0]
    'holds: every k1 below 5000 that was tried (4000) is above SupCon'
    """
    reference = next((score for setting, score in tried if setting == SUPCON), Score((), "failed"))
    results = {s["k1"]: compare_scores(score, reference, seeds) for s, score in tried if s["k2"] == 1.0 and s != SUPCON}
    below = {k1: each.verdict for k1, each in results.items() if k1 < REMARK}
    values = ", ".join(f"{k1:g}" for k1 in below)
    if "below" in below.values():
        worse = ", ".join(f"{k1:g}" for k1, verdict in below.items() if verdict == "below")
        return f"does not hold: k1 = {worse} is below SupCon", results
    if below and all(verdict == "above" for verdict in below.values()):
        return f"holds: every k1 below 5000 that was tried ({values}) is above SupCon", results
    if len(seeds) == 1:
        return f"{NOT_RESOLVED}: one seed has no interval", results
    return (
        f"{NOT_RESOLVED}: not every k1 below 5000 that was tried ({values}) differs from SupCon by its interval",
        results,
    )
