"""The TCL supplement's way to k1 and k2. (Animesh & Chandraker, supplement section 3.)

    1.  k2 = 1, k1 = 4,000 and 5,000, "almost always working"; beside them SupCon, which is k1 = 0, k2 = 1
    2.  "or otherwise with 2 × 10³ and increase it in steps of 2000 till 8 × 10³": if neither beats SupCon
    3.  k1 stays, k2 rises by 0.2 as long as the score does; then 0.1 to either side of the best
    Without labels k1 = 1, for with two positives an anchor a larger one "didn't help much", and only 3 is done.

What is chosen is the best of everything tried, SupCon included; of equals the first tried.

Deviates: the supplement does not say when its "otherwise" applies, nor which of "steps of 0.1 or 0.2" when; here as
above. It does not say on which rows its values were chosen; here the test rows are never among them. It has no end for
k2; here 3, twice what it uses anywhere.
"""

from __future__ import annotations

from kontrast.experiments.tune.search import Asking, Ending, Search, Setting, Tried, better

START = (4000.0, 5000.0)
RANGE = (2000.0, 4000.0, 6000.0, 8000.0)
REMARK = 5000.0  # "any value less than 5 × 10³ always gave improvements in performance over SupCon loss"
STEP, HALF, MOST = 0.2, 0.1, 3.0  # of k2
SUPCON: Setting = {"k1": 0.0, "k2": 1.0}


def choose_k(*, supervised: bool = True) -> Search:
    """The search for k1 and k2; without labels for k2 alone.

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
    if not any(better(tried.mean(_at(k1)), tried.mean(SUPCON)) for k1 in START):
        why = "neither k1 = 4000 nor 5000 beat SupCon: 2000 to 8000 in steps of 2000"
        yield from tried.ask("range", why, map(_at, RANGE))
    best = tried.best([_at(k1) for k1 in {*START, *RANGE}])
    if best is None:
        return Ending(tried.best(), "no k1 from 2000 to 8000 has a score: every one failed or was stopped")
    yield from _raise_k2(tried, best["k1"])
    return _end(tried, best["k1"])


def _at(k1: float, k2: float = 1.0) -> Setting:
    return {"k1": k1, "k2": k2}


def _raise_k2(tried: Tried, k1: float) -> Asking:
    best, higher = 1.0, round(1.0 + STEP, 1)
    while higher <= MOST:
        why = f"k1 = {k1:g} stays: does k2 = {higher:g} improve on {best:g}?"
        yield from tried.ask("k2", why, [_at(k1, higher)])
        if not better(tried.mean(_at(k1, higher)), tried.mean(_at(k1, best))):
            break
        best, higher = higher, round(higher + STEP, 1)
    sides = [k2 for k2 in (round(best + HALF, 1), round(best - HALF, 1)) if 1.0 < k2 <= MOST]
    words = " and ".join(f"{k2:g}" for k2 in sides)
    yield from tried.ask("k2, half steps", f"beside the best, k2 = {best:g}: {words}", [_at(k1, k2) for k2 in sides])


def _end(tried: Tried, k1: float) -> Ending:
    """What was chosen, and the step of k2 that brought nothing more."""
    mine = tried.best([setting for setting, _ in tried.scores if setting["k1"] == k1])
    chosen = tried.best()
    if mine is None:
        return Ending(chosen, f"no k2 at k1 = {k1:g} has a score: every one failed or was stopped")
    above = [setting["k2"] for setting, _ in tried.scores if setting["k1"] == k1 and setting["k2"] > mine["k2"]]
    if above:
        why = (
            f"at k1 = {k1:g}, raising k2 above {mine['k2']:g} ({', '.join(f'{k2:g}' for k2 in sorted(above))}) brought "
        )
        why += "nothing more"
    else:
        why = f"at k1 = {k1:g}, k2 = {mine['k2']:g} is the largest tried, and the score still rose"
    return Ending(chosen, why + ("; but nothing tried beat SupCon" if chosen == SUPCON else ""))
