r"""How low a loss can go, and where between chance and that it stands.

K classes with m samples each (b = Km rows), N pairs, unit embeddings unless a radius ρ is given, τ the temperature:

    (1)  cross-entropy        log(1 + (K−1) e^{−ρ √K ‖W‖_F/(K−1)})
    (2)  its L2 form          log(1 + (K−1) e^{−Kρr/(K−1)}) + λKr²   at r = r_W, the root of
                              2λr (e^{Kρr/(K−1)} + K − 1) = ρ
    (3)  SC, every multiset   Σ_{l=2}^{b} l·M_l·log(l − 1 + (b−l) e^{−Kρ²/(K−1)}),   N = nK points,
         batch of size b      M_l = K·C(n+l−1, l)·C(n(K−1)+b−l−1, b−l)
    (4)  SupCon, one batch    log(m−1 + (b−m) e^{−K/((K−1)τ)})
    (5)  TCL, one batch       log((m−1)(1 + k1 e^{−1−1/τ}) + k2 (b−m) e^{−K/((K−1)τ)})
    (6)  InfoNCE in a batch   log(1 + (N−1) e^{−N/((N−1)τ)})
    (7)  InfoNCE, a queue     log(1 + M e^{−2/τ}),   M negatives
    (10) InfoNCE, both        log(1 + (N−1) e^{−N/((N−1)τ)} + M e^{−2/τ})
    (11) energy of weights    (2K/(K−1))^{−s/2},   −½ log(2K/(K−1)) for s = 0

(1)–(3) are Graf et al.'s, with equality exactly where the classes collapse to a regular simplex (and W is one too,
aligned). (4)–(6) follow the same way: the loss is convex in the similarities, so by Jensen it is at least its value at
their means, and the means are bounded: mean positive ≤ 1 and ‖Σ_i z_i‖² ≥ 0 for (4) and (5); for (6)
Σ_i ⟨q_i − q̄, k_i − k̄⟩ ≤ N bounds mean negative − mean positive by −N/(N−1). All are reached at the simplex. (7) takes
every negative opposite, which M free keys can do. (10) has the N − 1 other keys and M rows beside them
(``negatives_in_batch``): log(1 + (N−1) e^a + M e^b) is convex and increasing in both mean gaps, so each may be put at
its own bound. It holds and is not reached: b = −2/τ wants all queries equal, a wants them apart. (11) is derived in
`kontrast.energy`; it is reached where the weights' directions are a regular simplex.

With labels of any kind (4) and (5) do not hold; every negative opposite does, and is what `standing` uses then:

    (8)  mean over anchors of log(l−1 + (b−l) e^{−2/τ}),   l = how many of the anchor's class are in the batch

Cross-entropy with class shares π: Jensen over the samples and Cauchy–Schwarz over the classes give, for any labels,

    (9)  log(1 + (K−1) e^{−K ρ ‖W‖_F √(Σ_y π_y²)/(K−1)}),   which is (1) for π = 1/K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kontrast.checks import number, whole_number
from kontrast.energy import energy_power, smallest_energy


def cross_entropy(num_classes: int, radius: float, weight_norm: float) -> float:
    """(1): balanced labels, embeddings within ``radius``, weights of Frobenius norm ``weight_norm``.

    Args:
        num_classes: K, at least 2.
        radius: ρ, the largest length of an embedding.
        weight_norm: ‖W‖_F.

    Returns:
        The bound.

    Raises:
        ValueError: A number lies outside its range.

    >>> round(cross_entropy(4, radius=1.0, weight_norm=2.0), 4)  # each weight of length 1: log(1 + 3 e^{−4/3})
    0.5827
    """
    k = whole_number("num_classes", num_classes, least=2)
    rho, norm = number("radius", radius, least=0.0), number("weight_norm", weight_norm, least=0.0)
    return _softplus(math.log(k - 1) - rho * math.sqrt(k) / (k - 1) * norm)


def cross_entropy_any(shares: Sequence[float], radius: float, weight_norm: float) -> float:
    """(9): (1) for labels of any kind; ``shares`` is each class's share of the samples (they sum to 1).

    Args:
        shares: Each class's share of the samples; at least two, with the sum 1.
        radius: ρ, the largest length of an embedding.
        weight_norm: ‖W‖_F.

    Returns:
        The bound.

    Raises:
        ValueError: A number lies outside its range, or the shares do not sum to 1.

    >>> cross_entropy_any([0.25] * 4, 1.0, 2.0) == cross_entropy(4, 1.0, 2.0)
    True
    """
    shares = [float(p) for p in shares]
    k = whole_number("the number of shares", len(shares), least=2)
    if abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"shares must sum to 1, got {sum(shares)}")
    rho, norm = number("radius", radius, least=0.0), number("weight_norm", weight_norm, least=0.0)
    length = math.sqrt(sum(number("each of shares", p, least=0.0) ** 2 for p in shares))
    return _softplus(math.log(k - 1) - k / (k - 1) * rho * norm * length)


def regularised_weight_radius(num_classes: int, radius: float, penalty: float) -> float:
    """r_W of (2): the length of each weight where the loss with penalty λ‖W‖² is smallest.

    Args:
        num_classes: K, at least 2.
        radius: ρ.
        penalty: λ.

    Returns:
        r_W.

    Raises:
        ValueError: A number lies outside its range.

    >>> round(regularised_weight_radius(4, radius=1.0, penalty=0.005), 4)
    2.6583
    """
    k = whole_number("num_classes", num_classes, least=2)
    rho, penalty = number("radius", radius, above=0.0), number("penalty", penalty, above=0.0)
    # In logarithms the left side of (2) is increasing and does not overflow.
    target = math.log(rho / (2 * penalty))

    def above(log_r: float) -> bool:
        exponent = k / (k - 1) * rho * math.exp(log_r)
        return log_r + math.log(k - 1) + _softplus(exponent - math.log(k - 1)) > target

    low, high = target - math.log(k) - 1.0, target
    while above(low):
        low -= 10.0
    while high - low > 1e-15 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if above(middle) else (middle, high)
    return math.exp((low + high) / 2)


def regularised_cross_entropy(num_classes: int, radius: float, penalty: float) -> float:
    """(2): the smallest value of cross-entropy + λ‖W‖², over points and weights both.

    Args:
        num_classes: K, at least 2.
        radius: ρ.
        penalty: λ.

    Returns:
        The smallest value.

    Raises:
        ValueError: A number lies outside its range.

    >>> round(regularised_cross_entropy(4, radius=1.0, penalty=0.05), 4)
    0.7612
    """
    r = regularised_weight_radius(num_classes, radius, penalty)
    return cross_entropy(num_classes, radius, math.sqrt(num_classes) * r) + penalty * num_classes * r * r


def hyperspherical_energy(num_classes: int, power: float = 2.0) -> float:
    """(11): the smallest hyperspherical energy that weights of so many classes can have.

    It is what ``energy_penalty`` of `losses.CrossEntropyLoss` multiplies.

    Args:
        num_classes: K, at least 2.
        power: s, from 0 to 10; the loss's ``energy_power``.

    Returns:
        The mean over pairs of ‖ŵ_i − ŵ_j‖^(−s) at a regular simplex (for s = 0 of log 1/‖ŵ_i − ŵ_j‖).

    Raises:
        ValueError: A number lies outside its range.

    >>> round(hyperspherical_energy(10), 4)  # 9/20: the squared distance of two vertices is 20/9
    0.45
    """
    return smallest_energy(whole_number("num_classes", num_classes, least=2), energy_power(power))


def supcon_all_batches(num_classes: int, per_class: int, batch_size: int, radius: float = 1.0) -> float:
    """(3): the sum over all multiset batches of ``batch_size`` from ``per_class`` points in each class.

    Args:
        num_classes: K, at least 2.
        per_class: n, points of each class.
        batch_size: b, at least 2.
        radius: ρ.

    Returns:
        The bound of the sum.

    Raises:
        ValueError: A number lies outside its range, or the sum is beyond float64.

    >>> round(supcon_all_batches(3, per_class=3, batch_size=4), 4)
    908.1147
    """
    k = whole_number("num_classes", num_classes, least=2)
    n, b = whole_number("per_class", per_class, least=1), whole_number("batch_size", batch_size, least=2)
    apart = math.exp(-k * number("radius", radius, above=0.0) ** 2 / (k - 1))
    try:
        return math.fsum(
            members * batches_with(k, n, b, members) * math.log(members - 1 + (b - members) * apart)
            for members in range(2, b + 1)
        )
    except OverflowError:
        raise ValueError(
            f"the sum over all batches of {b} from {k * n} points is beyond float64; divide by their number "
            f"C({k * n + b - 1}, {b}) by hand, or use supcon_batch for one balanced batch"
        ) from None


def batches_with(num_classes: int, per_class: int, batch_size: int, members: int) -> int:
    """M_l of (3): how many (multiset batch, class) pairs have ``members`` of that class in the batch.

    Args:
        num_classes: K, at least 2.
        per_class: n, points of each class.
        batch_size: b.
        members: l.

    Returns:
        M_l.

    Raises:
        ValueError: A number lies outside its range.

    >>> [batches_with(2, per_class=2, batch_size=2, members=m) for m in range(3)]  # 10 batches of 2 from 4 points
    [6, 8, 6]
    """
    k, n = whole_number("num_classes", num_classes, least=2), whole_number("per_class", per_class, least=1)
    rest = whole_number("batch_size − members", batch_size - whole_number("members", members, least=0), least=0)
    return k * math.comb(n + members - 1, members) * math.comb(n * (k - 1) + rest - 1, rest)


def supcon_batch(num_classes: int, per_class: int, temperature: float) -> float:
    """(4): one batch with ``per_class`` rows (views counted) of each class, mean over anchors.

    Args:
        num_classes: K, at least 2.
        per_class: m, rows of each class (views counted), at least 2.
        temperature: τ.

    Returns:
        The bound.

    Raises:
        ValueError: A number lies outside its range.

    >>> round(supcon_batch(4, per_class=2, temperature=1.0), 4)  # log(1 + 6 e^{−4/3})
    0.9484
    """
    return tcl_batch(num_classes, per_class, temperature, k1=0.0, k2=1.0)


def tcl_batch(num_classes: int, per_class: int, temperature: float, k1: float, k2: float) -> float:
    """(5): one batch with ``per_class`` rows (views counted) of each class, mean over anchors.

    Args:
        num_classes: K, at least 2.
        per_class: m, rows of each class (views counted), at least 2.
        temperature: τ.
        k1: TCL's k1; 0 is SupCon.
        k2: TCL's k2; 1 is SupCon.

    Returns:
        The bound.

    Raises:
        ValueError: A number lies outside its range.

    >>> tcl_batch(4, per_class=2, temperature=1.0, k1=0.0, k2=1.0) == supcon_batch(4, 2, 1.0)
    True
    """
    k = whole_number("num_classes", num_classes, least=2)
    m, tau = whole_number("per_class", per_class, least=2), number("temperature", temperature, above=0.0)
    return anchor_value(m - 1, (k - 1) * m, 1.0, -1 / (k - 1), temperature=tau, k1=k1, k2=k2)


def info_nce(num_pairs: int, temperature: float) -> float:
    """(6): queries against the batch's keys, one direction.

    Args:
        num_pairs: N, at least 2.
        temperature: τ.

    Returns:
        The bound.

    Raises:
        ValueError: A number lies outside its range.

    >>> round(info_nce(2, temperature=1.0), 4)  # log(1 + e^{−2})
    0.1269
    """
    n, tau = whole_number("num_pairs", num_pairs, least=2), number("temperature", temperature, above=0.0)
    return anchor_value(1, n - 1, 1.0, -1 / (n - 1), temperature=tau)


def info_nce_queue(num_negatives: int, temperature: float) -> float:
    """(7): against ``num_negatives`` keys of a queue or a memory bank.

    Args:
        num_negatives: M, at least 1.
        temperature: τ.

    Returns:
        The bound.

    Raises:
        ValueError: A number lies outside its range.

    >>> round(info_nce_queue(4096, temperature=0.5), 4)
    4.331
    """
    m, tau = whole_number("num_negatives", num_negatives, least=1), number("temperature", temperature, above=0.0)
    return anchor_value(1, m, 1.0, -1.0, temperature=tau)


def info_nce_beside(num_pairs: int, num_negatives: int, temperature: float) -> float:
    """(10): against the batch's other keys and ``num_negatives`` rows beside them, ``negatives_in_batch=True``.

    Args:
        num_pairs: N, at least 2.
        num_negatives: M, at least 1.
        temperature: τ.

    Returns:
        The bound.

    Raises:
        ValueError: A number lies outside its range.

    >>> round(info_nce_beside(2, num_negatives=4, temperature=1.0), 4)  # log(1 + e^{−2} + 4 e^{−2})
    0.5168
    """
    n, tau = whole_number("num_pairs", num_pairs, least=2), number("temperature", temperature, above=0.0)
    m = whole_number("num_negatives", num_negatives, least=1)
    return beside(n, m, temperature=tau)


def beside(pairs: int, negatives: int, *, temperature: float, largest: float = 1.0) -> float:
    """(10) for rows whose similarities are at most ``largest``, and for one pair, which has no other key.

    Args:
        pairs: N, at least 1.
        negatives: M, at least 1.
        temperature: τ.
        largest: The largest similarity.

    Returns:
        The bound.

    >>> beside(2, 4, temperature=1.0) == info_nce_beside(2, num_negatives=4, temperature=1.0)
    True
    """
    terms = [0.0, math.log(negatives) - 2 * largest / temperature]
    if pairs > 1:
        terms.append(math.log(pairs - 1) - pairs / (pairs - 1) * largest / temperature)
    return _log_sum(terms)


def anchor_value(
    positives: float,
    negatives: float,
    similarity_positive: float,
    similarity_negative: float,
    *,
    temperature: float,
    k1: float = 0.0,
    k2: float = 1.0,
) -> float:
    """TCL (SupCon, InfoNCE) of an anchor whose positives are all equally similar, and its negatives too.

    Args:
        positives: How many positives there are; with 0 the value is 0.
        negatives: How many negatives there are.
        similarity_positive: The similarity to each positive.
        similarity_negative: The similarity to each negative.
        temperature: τ.
        k1: TCL's k1; 0 is SupCon.
        k2: TCL's k2; 1 is SupCon.

    Returns:
        The loss of the anchor.

    Raises:
        ValueError: A number lies outside its range.

    >>> anchor_value(1, 9, 0.0, 0.0, temperature=0.1)  # chance: log 10
    2.3025...
    """
    temperature = number("temperature", temperature, above=0.0)
    k1, k2 = number("k1", k1, least=0.0), number("k2", k2, least=0.0)
    if positives == 0:
        return 0.0
    gap = (similarity_negative - similarity_positive) / temperature
    terms = [math.log(positives)]
    if k1 > 0:
        terms.append(math.log(k1 * positives) - similarity_positive * (1 + 1 / temperature))
    if k2 > 0 and negatives > 0:
        terms.append(math.log(k2 * negatives) + gap)
    return _log_sum(terms)


def simplex_response(
    num_classes: int, per_class: float, temperature: float, *, k1: float = 0.0, k2: float = 1.0
) -> tuple[float, float]:
    """The gradient responses |X − P + Y| to a positive and P_in to a negative where classes are a simplex's vertices.

    Args:
        num_classes: K, at least 2.
        per_class: Rows of each class, above 1.
        temperature: τ.
        k1: TCL's k1; 0 is SupCon.
        k2: TCL's k2; 1 is SupCon.

    Returns:
        The two responses.

    Raises:
        ValueError: A number lies outside its range.

    >>> [round(x, 4) for x in simplex_response(2, per_class=2, temperature=1.0)]  # e against two of e^{−1}
    [0.213, 0.1065]
    """
    k = whole_number("num_classes", num_classes, least=2)
    tau, m = number("temperature", temperature, above=0.0), number("per_class", per_class, above=1.0)
    far = -1 / (k - 1)
    # The loss's value is log D − 1/τ here.
    log_d = 1 / tau + anchor_value(m - 1, (k - 1) * m, 1.0, far, temperature=tau, k1=k1, k2=k2)
    p, y = math.exp(1 / tau - log_d), tau * k1 * math.exp(-1 - log_d)
    return abs(1 / (m - 1) - p + y), k2 * math.exp(far / tau - log_d)


def _log_sum(terms: list[float]) -> float:
    """log Σ e^t, with the digits of a result near 0 where one of the terms is 0."""
    largest, *others = sorted(terms, reverse=True)
    return largest + math.log1p(math.fsum(math.exp(t - largest) for t in others))


def _softplus(x: float) -> float:
    """log(1 + e^x) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
