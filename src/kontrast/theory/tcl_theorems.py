r"""TCL, supplement sections 1 and 3: what k1 and k2 do to the gradients of positives and negatives.

X, P, Y and D are those of `theory.tcl`; P^s is SupCon's. Numbers are the supplement's, from (24) on ours:

    (15)  Theorem 1, k1, k2 ≥ 1, hard positive:  |X_ip − P^t_ip + Y^t_ip| > |X_ip − P^s_ip|
    (16)  P^t_ip < P^s_ip
    (17)  Y^t_ip > 0
    (23)  Theorem 2: P^t_in = e^{s_in/τ} / ((D₁ + k1 D₂)/k2 + D₃) rises strictly with k2
          where D₁ = Σ_p e^{s_ip/τ}, D₂ = Σ_p e^{−s_ip}, D₃ = Σ_n e^{s_in/τ}

Deviates: the proof of (15) passes from X − P^t + Y > X − P^s, which (16) and (17) give, to absolute values, and that
needs P^s ≤ X. A hardest (least similar) positive has it, because the P^s of all |P| positives sum to at most 1; an
easier one may not. Squaring both sides, (15) holds exactly where

    (25)  P^s_ip + P^t_ip < 2 X_ip + Y^t_ip

so it fails only for positives with P^s > X. Section 3 says that raising k2 also raises the positives' response by
lowering P^t_ip. It lowers Y^t_ip by the same factor: from k2 to k2' (D to D') the response X − P + Y changes by

    (26)  (P^t_ip − Y^t_ip)(1 − D/D')

which is a rise only where P^t > Y^t: at τ = 0.1 where s_ip > −0.21 for k1 = 1, but s_ip > 0.56 for k1 = 5000.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kontrast.losses import SupConLoss, TCLLoss
from kontrast.theory._check import check, required
from kontrast.theory._similarities import group_slopes, group_values, largest_error, spread
from kontrast.theory.tcl import mean_weight, negative_probability, positive_probability, supcon_probability, tuned_pull

TUNINGS = ((1.0, 1.0), (1.0, 1.5), (4000.0, 1.2), (5000.0, 1.0))  # k1, k2 ≥ 1
K1 = (0.0, 1.0, 10.0, 1000.0, 5000.0)
K2 = (0.5, 1.0, 1.2, 1.5, 2.0, 10.0)

# ------------------------------------------------------------------------------------------------- the formulas


def supcon_response(positives: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    """(15), right: |X − P^s| of every positive, from the similarities ``[..., p]`` and ``[..., n]``.

    >>> supcon_response(torch.zeros(2), torch.zeros(3), temperature=0.5)  # ½ − ⅕
    tensor([0.3000, 0.3000])
    """
    return (mean_weight(positives) - supcon_probability(positives, negatives, temperature=temperature)).abs()


def tcl_response(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(15), left: |X − P^t + Y| of every positive.

    >>> tcl_response(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # ½ − 1/28 + 5/28
    tensor([0.6429, 0.6429])
    """
    p = positive_probability(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    y = tuned_pull(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return (mean_weight(positives) - p + y).abs()


def margin(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(25): 2X + Y − P^s − P^t of every positive; (15) holds where it is positive.

    >>> margin(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # 1 + 5/28 − ⅕ − 1/28
    tensor([0.9429, 0.9429])
    """
    p = positive_probability(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    y = tuned_pull(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return 2 * mean_weight(positives) + y - supcon_probability(positives, negatives, temperature=temperature) - p


def response_change(
    positives: Tensor, negatives: Tensor, growth: Tensor, *, temperature: float, k1: float, k2: float
) -> Tensor:
    """(26): what a raised k2 adds to X − P + Y, ``growth [..., 1]`` being D'/D.

    >>> response_change(torch.zeros(2), torch.zeros(3), torch.tensor(2.0), temperature=0.5, k1=10.0, k2=2.0)
    tensor([-0.0714, -0.0714])
    """
    p = positive_probability(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    y = tuned_pull(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return (p - y) * (1 - 1 / growth)


def negative_response(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(23): P^t_in with k2 in one place.

    >>> negative_response(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # 1/((2 + 20)/2 + 3)
    tensor([0.0714, 0.0714, 0.0714])
    """
    d1, d3 = ((s / temperature).exp().sum(-1, keepdim=True) for s in (positives, negatives))
    d2 = (-positives).exp().sum(-1, keepdim=True)
    return (negatives / temperature).exp() / ((d1 + k1 * d2) / k2 + d3)


# --------------------------------------------------------------------------------------------------- the checks


def _random(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, float]]:
    """Similarities to the positives ``[A, p]`` and the negatives ``[A, n]``, and a temperature."""
    for p, n in ((1, 1), (4, 20), (9, 3)):
        for tau in (0.07, 0.1, 0.5):
            yield spread(generator, 100, p), spread(generator, 100, n), tau


def _tcl(tau: float, k1: float, k2: float) -> TCLLoss:
    return TCLLoss(tau, k1, k2, normalize=False, reduction="none")


def _measured(tau: float, k1: float, k2: float, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """P^t_ip, X − P^t_ip + Y^t_ip and P^t_in of TCLLoss (k1 = 0, k2 = 1: of SupConLoss). The first is in its value,
    L_i = log D − Σ_p s_ip/(τ|P|), the others in its backward."""
    untuned = (k1, k2) == (0.0, 1.0)
    loss = SupConLoss(tau, normalize=False, reduction="none") if untuned else _tcl(tau, k1, k2)
    log_d = group_values(loss, positives, negatives) + positives.mean(1) / tau
    by_positive, by_negative = group_slopes(loss, positives, negatives)
    return (positives / tau - log_d[:, None]).exp(), -tau * by_positive, tau * by_negative


@check("TCL (16)", "P^t_ip < P^s_ip", conditions="k1, k2 ≥ 1", tolerance=1e-12)
def tuning_lowers_positive_probability(generator: torch.Generator) -> float:
    """Both as the losses' values have them; the formulas deviate from those by the error."""
    error = 0.0
    for *s, tau in _random(generator):
        supcon = _measured(tau, 0.0, 1.0, *s)[0]
        error = max(error, largest_error(supcon_probability(*s, temperature=tau), supcon))
        for k1, k2 in TUNINGS:
            tcl = _measured(tau, k1, k2, *s)[0]
            error = max(error, largest_error(positive_probability(*s, temperature=tau, k1=k1, k2=k2), tcl))
            error += required(bool((tcl < supcon).all()))
    return error


@check("TCL (17)", "Y^t_ip > 0, and Y^t_ip = 0 without k1", conditions="k1 > 0", tolerance=1e-12)
def tuned_pull_is_positive(generator: torch.Generator) -> float:
    """Y is what is left of TCLLoss's backward once X and P, which its value has, are taken out."""
    error = 0.0
    for *s, tau in _random(generator):
        for k1, k2 in (*TUNINGS, (0.0, 2.0)):
            p, response, _ = _measured(tau, k1, k2, *s)
            y = tuned_pull(*s, temperature=tau, k1=k1, k2=k2)
            error = max(error, largest_error(y, response - mean_weight(s[0]) + p))
            error += required(bool((y > 0).all() if k1 > 0 else (y == 0).all()))
    return error


@check("TCL, Theorem 1", "|X − P^t + Y| > |X − P^s|", conditions="k1, k2 ≥ 1; least similar positive", tolerance=1e-12)
def tuning_raises_hardest_positive(generator: torch.Generator) -> float:
    """On the losses' own gradients, for every anchor; the formulas deviate from those by the error."""
    error = 0.0
    for *s, tau in _random(generator):
        supcon, hardest = _measured(tau, 0.0, 1.0, *s)[1].abs(), s[0].argmin(1, keepdim=True)
        error = max(error, largest_error(supcon_response(*s, temperature=tau), supcon))
        for k1, k2 in TUNINGS:
            tcl = _measured(tau, k1, k2, *s)[1].abs()
            error = max(error, largest_error(tcl_response(*s, temperature=tau, k1=k1, k2=k2), tcl))
            error += required(bool((tcl.gather(1, hardest) > supcon.gather(1, hardest)).all()))
    return error


@check(
    "TCL, Theorem 1",
    "|X − P^t + Y| > |X − P^s| exactly where P^s + P^t < 2X + Y; elsewhere P^s > X",
    conditions="k1, k2 ≥ 1; any positive",
    tolerance=1e-12,
)
def tuning_can_lower_easy_positives(generator: torch.Generator) -> float:
    """On the losses' own gradients. The theorem must fail for some positives here, and never for the hardest one; the
    error is that of |X − P^t + Y|² − |X − P^s|², as the product (P^s − P^t + Y) · (25) that (25) is read from."""
    error = 0.0
    for p, tau, k1, k2 in ((4, 0.1, 1.0, 1.5), (9, 0.1, 1.0, 1.5), (4, 0.07, 1.0, 1.0), (4, 0.5, 1.0, 1.5)):
        s = spread(generator, 2000, p), spread(generator, 2000, 10)
        probability, supcon, _ = _measured(tau, 0.0, 1.0, *s)
        tcl = _measured(tau, k1, k2, *s)[1]
        bound = margin(*s, temperature=tau, k1=k1, k2=k2)
        error = max(error, largest_error((tcl - supcon) * bound, tcl**2 - supcon**2))
        clear = bound.abs() > 1e-9  # the two sides of (15) are equal at 0
        fails = (tcl.abs() <= supcon.abs()) & clear
        error += required(torch.equal(fails, (bound < 0) & clear))
        error += required(bool(fails.any() and (probability[fails] > mean_weight(s[0])).all()))
        error += required(not bool(fails.gather(1, s[0].argmin(1, keepdim=True)).any()))
    return error


@check("TCL, Theorem 2", "P^t_in = e^{s_in/τ}/((D₁ + k1 D₂)/k2 + D₃) rises strictly with k2", tolerance=1e-12)
def negatives_rise_with_k2(generator: torch.Generator) -> float:
    """On TCLLoss's own gradient, at every k1; (23) deviates from it by the error."""
    error = 0.0
    for *s, tau in _random(generator):
        for k1 in K1:
            found = torch.stack([_measured(tau, k1, k2, *s)[2] for k2 in K2])
            formula = torch.stack([negative_response(*s, temperature=tau, k1=k1, k2=k2) for k2 in K2])
            error = max(error, largest_error(formula, found)) + required(bool((found.diff(dim=0) > 0).all()))
    return error


@check("TCL, supplement section 3", "raising k1 lowers P^t_in and P^t_ip strictly", tolerance=1e-12)
def probabilities_fall_with_k1(generator: torch.Generator) -> float:
    """P^t_ip as TCLLoss's value has it, P^t_in as its gradient has; (3) and (5) deviate from those by the error."""
    error = 0.0
    for *s, tau in _random(generator):
        for k2 in K2:
            measured = [_measured(tau, k1, k2, *s) for k1 in K1]
            for which, formula in ((0, positive_probability), (2, negative_probability)):
                found = torch.stack([m[which] for m in measured])
                expected = torch.stack([formula(*s, temperature=tau, k1=k1, k2=k2) for k1 in K1])
                error = max(error, largest_error(expected, found)) + required(bool((found.diff(dim=0) < 0).all()))
    return error


@check("TCL, supplement section 3", "raising k2 lowers P^t_ip strictly", tolerance=1e-12)
def positive_probability_falls_with_k2(generator: torch.Generator) -> float:
    """As TCLLoss's value has it; (3) deviates from that by the error."""
    error = 0.0
    for *s, tau in _random(generator):
        for k1 in K1:
            found = torch.stack([_measured(tau, k1, k2, *s)[0] for k2 in K2])
            expected = torch.stack([positive_probability(*s, temperature=tau, k1=k1, k2=k2) for k2 in K2])
            error = max(error, largest_error(expected, found)) + required(bool((found.diff(dim=0) < 0).all()))
    return error


@check(
    "TCL, supplement section 3",
    "raising k2 adds (P^t_ip − Y^t_ip)(1 − D/D') to X − P^t_ip + Y^t_ip",
    conditions="a rise only where P^t_ip > Y^t_ip",
    tolerance=1e-12,
)
def positives_rise_with_k2_where_unsaturated(generator: torch.Generator) -> float:
    """On TCLLoss's own values (for D'/D) and gradients. Rises and falls must both occur, as they do at large k1."""
    error = 0.0
    for p, n, tau in ((2, 20, 0.1), (4, 20, 0.1), (9, 3, 0.5)):
        s, rises, falls = (spread(generator, 200, p), spread(generator, 200, n)), 0, 0
        for k1 in (1.0, 100.0, 5000.0):
            for k2, raised in ((1.0, 1.2), (1.0, 1.5), (1.5, 10.0)):
                before, after = _tcl(tau, k1, k2), _tcl(tau, k1, raised)
                growth = (group_values(after, *s) - group_values(before, *s)).exp()[:, None]
                change = _measured(tau, k1, raised, *s)[1] - _measured(tau, k1, k2, *s)[1]
                found = response_change(*s, growth, temperature=tau, k1=k1, k2=k2)
                error = max(error, largest_error(found, change))
                rises, falls = rises + int((change > 1e-9).sum()), falls + int((change < -1e-9).sum())
        error += required(rises > 0 and falls > 0)
    return error
