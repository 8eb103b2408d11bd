r"""The search for a temperature: a coarse logarithmic grid, then closer and closer to its best value.

    1.  the recipe's own τ, and τ = 0.05, 0.1, 0.2, 0.5, 1
    2.  √(τ_best τ_neighbour) on either side; at the grid's edge twice as far out, within 0.01 … 2
        repeated as long as the best moves and new values differ by a tenth or more
    3.  where the target has a temperature τ_m of its own (SCE, ReSSL): in 1 and 2 the ratio τ_m/τ is the recipe's;
        then, at the best τ, τ_m/τ = 0.3, 0.5, 0.7, 0.9, and step 2 for τ_m, within 0.1 … 0.95:
        at τ_m = τ ReSSL collapses

Values have two digits. The choice is the best of everything tried; of equals the first tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

from kontrast.experiments.tune.search import Ending, Phase, Score, Search, Setting, Tried

GRID = (0.05, 0.1, 0.2, 0.5, 1.0)
LEAST, MOST = 0.01, 2.0
RATIOS = (0.3, 0.5, 0.7, 0.9)
LEAST_RATIO, MOST_RATIO = 0.1, 0.95
EDGE = 2.0  # how far out, where the best has no neighbour
CLOSE = 1.1  # the smallest ratio of two values that are worth comparing

Narrowing = Generator[Phase, Sequence[Score], str]


def choose_temperature(own: float, own_target: float | None = None) -> Search:
    """Search for the temperature τ, and for the target's temperature τ_m if there is one.

    Args:
        own: The recipe's τ, tried first.
        own_target: The recipe's τ_m; None for a method without.

    Returns:
        A search procedure (`kontrast.experiments.tune.search`).

    >>> [setting["temperature"] for setting in next(choose_temperature(0.07)).settings]
    [0.07, 0.05, 0.1, 0.2, 0.5, 1.0]
    """
    tried = Tried()

    def at(tau: float) -> Setting:
        if own_target is None:
            return {"temperature": tau}
        return {
            "temperature": tau,
            "target_temperature": own_target if tau == own else _round(tau * own_target / own),
        }

    together = "" if own_target is None else "; the target's temperature in proportion"
    why = f"the recipe's own {own:g}, and a grid from 0.05 to 1{together}"
    yield from tried.ask("coarse", why, map(at, (own, *GRID)))
    why = yield from _narrow(tried, "temperature", at, [own, *GRID], (LEAST, MOST))
    best = tried.best()
    if own_target is None or best is None:
        return Ending(best, why)
    tau = best["temperature"]

    def target(tau_m: float) -> Setting:
        return {"temperature": tau, "target_temperature": tau_m}

    points = [_round(tau * ratio) for ratio in RATIOS]
    name = "target temperature"
    yield from tried.ask(name, f"temperature = {tau:g} stays: the target's, 0.3 to 0.9 of it", map(target, points))
    bounds = (LEAST_RATIO * tau, MOST_RATIO * tau)
    then = yield from _narrow(tried, name, target, [*points, best["target_temperature"]], bounds)
    return Ending(tried.best(), f"{why}; {then}")


def _narrow(
    tried: Tried, name: str, at: Callable[[float], Setting], known: Sequence[float], bounds: tuple[float, float]
) -> Narrowing:
    """Step 2 around the best of the known values; returns why it stopped."""
    points = sorted(set(known))
    option = name.replace(" ", "_")
    while True:
        best = tried.best([at(point) for point in points])
        if best is None:
            return f"no {name} has a score: every one failed or was stopped"
        middle = best[option]
        i = points.index(middle)
        below = math.sqrt(points[i - 1] * middle) if i > 0 else middle / EDGE
        above = math.sqrt(points[i + 1] * middle) if i + 1 < len(points) else middle * EDGE
        new = [x for x in map(_round, (below, above)) if bounds[0] <= x <= bounds[1] and _is_new(x, points)]
        if not new:
            return f"nothing between {name} = {middle:g} and its neighbours differs by a tenth or more"
        values = " and ".join(f"{x:g}" for x in new)
        yield from tried.ask(name, f"the best so far is {middle:g}: beside it {values}", map(at, new))
        points = sorted([*points, *new])
        if tried.best([at(point) for point in points]) == best:
            return f"{values} did not improve on {name} = {middle:g}"


def _is_new(x: float, points: Sequence[float]) -> bool:
    return all(max(x / point, point / x) >= CLOSE for point in points)


def _round(x: float) -> float:
    return float(f"{x:.2g}")
