r"""TCL (Animesh & Chandraker), supplement sections 1 and 3: the gradients of SupCon and TCL, and what k1 and k2 do.

P(i) are anchor i's positives, N(i) its negatives, s_ia = ⟨z_i, z_a⟩; L_i is differentiated by z_i as the anchor, the
other rows held fixed. Numbers up to (23) are the supplement's:

    (1)   Lemma 2: ∂L_i/∂z_i = (1/τ)[ Σ_p z_p (P^t_ip − X_ip − Y^t_ip) + Σ_n z_n P^t_in ]
    (2)   X_ip = 1/|P(i)|
    (3)   P^t_ip = e^{s_ip/τ} / D(z_i)
    (4)   Y^t_ip = τ k1 e^{−s_ip} / D(z_i)
    (5)   P^t_in = k2 e^{s_in/τ} / D(z_i)
    (6)   L_i = −(1/|P(i)|) Σ_p log( e^{s_ip/τ} / D(z_i) )
    (15)  Theorem 1, k1, k2 ≥ 1, hard positive:  |X_ip − P^t_ip + Y^t_ip| > |X_ip − P^s_ip|
    (16)  P^t_ip < P^s_ip
    (17)  Y^t_ip > 0
    (20)–(22)  D(z_i) = Σ_p e^{s_ip/τ} + k1 Σ_p e^{−s_ip} + k2 Σ_n e^{s_in/τ}
    (23)  Theorem 2: P^t_in = e^{s_in/τ} / ((D₁ + k1 D₂)/k2 + D₃) rises strictly with k2
          where D₁ = Σ_p e^{s_ip/τ}, D₂ = Σ_p e^{−s_ip}, D₃ = Σ_n e^{s_in/τ}

Lemma 1 is (1) for SupCon, where k1 = 0 and k2 = 1: P^s_ia = e^{s_ia/τ} / Σ_{a'≠i} e^{s_ia'/τ} for both kinds, and no Y.
Where z_i = w_i/‖w_i‖, positive p's part of ∂L_i/∂w_i is (P − X − Y)(z_p − s_ip z_i)/(τ‖w_i‖), whose length is

    (24)  |P^t_ip − X_ip − Y^t_ip| √(1 − s_ip²) / (τ‖w_i‖)

so that easy positives (s ≈ 1) hardly pull, and hard ones (s ≈ 0) with |P − X − Y| (text of the proof of Theorem 1; the
number is ours).

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

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kontrast.losses import SupConLoss, TCLLoss
from kontrast.sphere import unit
from kontrast.theory._inputs import group_slopes, group_values, largest, largest_error, on_sphere, random_similarities
from kontrast.theory.check import check, required

TUNINGS = ((5000.0, 1.0), (4000.0, 1.2), (1.0, 1.5), (0.0, 2.0), (3.0, 0.0))  # k1, k2: the paper's first
THEOREM_1_TUNINGS = ((1.0, 1.0), (1.0, 1.5), (4000.0, 1.2), (5000.0, 1.0))  # k1, k2 ≥ 1, as Theorem 1 has them
K1 = (0.0, 1.0, 10.0, 1000.0, 5000.0)
K2 = (0.5, 1.0, 1.2, 1.5, 2.0, 10.0)

# ---------------------------------------------------------------------------------------------- formulas of the lemmas


def denominator(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(20)–(22): D(z_i) from the similarities ``[..., p]`` and ``[..., n]``, as ``[..., 1]``.

    >>> denominator(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # 2 + 10·2 + 2·3
    tensor([28.])
    """
    d1, d2, d3 = (x.exp().sum(-1, keepdim=True) for x in (positives / temperature, -positives, negatives / temperature))
    return d1 + k1 * d2 + k2 * d3  # (20), (21), (22)


def mean_weight(positives: Tensor) -> float:
    """(2): X_ip.

    >>> mean_weight(torch.zeros(4))
    0.25
    """
    return 1 / positives.shape[-1]


def positive_probability(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(3): P^t_ip.

    >>> positive_probability(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # 1/28
    tensor([0.0357, 0.0357])
    """
    d = denominator(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return (positives / temperature).exp() / d


def tuned_pull(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(4): Y^t_ip.

    >>> tuned_pull(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # 0.5·10/28
    tensor([0.1786, 0.1786])
    """
    d = denominator(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return temperature * k1 * (-positives).exp() / d


def negative_probability(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(5): P^t_in.

    >>> negative_probability(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # 2/28
    tensor([0.0714, 0.0714, 0.0714])
    """
    d = denominator(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return k2 * (negatives / temperature).exp() / d


def tcl_loss(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    """(6): L_i.

    >>> tcl_loss(torch.zeros(2), torch.zeros(3), temperature=0.5, k1=10.0, k2=2.0)  # log 28
    tensor(3.3322)
    """
    p = positive_probability(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return -p.log().sum(-1) / positives.shape[-1]


def supcon_probability(similarities: Tensor, others: Tensor, *, temperature: float) -> Tensor:
    """P^s_ia of Lemma 1 for some of the similarities (positives, say), the others being in the denominator too.

    >>> supcon_probability(torch.zeros(2), torch.zeros(3), temperature=0.5)
    tensor([0.2000, 0.2000])
    """
    e, rest = (similarities / temperature).exp(), (others / temperature).exp()
    return e / (e.sum(-1, keepdim=True) + rest.sum(-1, keepdim=True))


def supcon_gradient(anchor: Tensor, positives: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    """Lemma 1: ∂L_i/∂z_i from the rows z_i ``[D]``, z_p ``[p, D]`` and z_n ``[n, D]``.

    >>> axes = torch.eye(3)
    >>> supcon_gradient(axes[0], axes[1:2], axes[2:], temperature=0.5)  # 2·(½ − 1), 2·½
    tensor([ 0., -1.,  1.])
    """
    s_p, s_n = positives @ anchor, negatives @ anchor
    pull = supcon_probability(s_p, s_n, temperature=temperature) - mean_weight(s_p)
    push = supcon_probability(s_n, s_p, temperature=temperature)
    return (pull @ positives + push @ negatives) / temperature


def tcl_gradient(
    anchor: Tensor, positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float
) -> Tensor:
    """(1), Lemma 2: ∂L_i/∂z_i from the rows z_i ``[D]``, z_p ``[p, D]`` and z_n ``[n, D]``.

    >>> axes = torch.eye(3)
    >>> tcl_gradient(axes[0], axes[1:2], axes[2:], temperature=0.5, k1=1.0, k2=2.0)  # D = 4: 2(¼ − 1 − ⅛), 2·½
    tensor([ 0.0000, -1.7500,  1.0000])
    """
    s_p, s_n = positives @ anchor, negatives @ anchor
    pull = _pull(s_p, s_n, temperature=temperature, k1=k1, k2=k2)
    push = negative_probability(s_p, s_n, temperature=temperature, k1=k1, k2=k2)
    return (pull @ positives + push @ negatives) / temperature


def normalised_pull(pull: Tensor, similarity: Tensor, *, temperature: float, norm: Tensor) -> Tensor:
    """(24): the length of a positive's part of ∂L_i/∂w_i, from P − X − Y.

    >>> normalised_pull(torch.tensor(-0.5), torch.tensor([0.0, 0.6]), temperature=0.5, norm=torch.tensor(2.0))
    tensor([0.5000, 0.4000])
    """
    return pull.abs() * (1 - similarity**2).sqrt() / (temperature * norm)


def _pull(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    p = positive_probability(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    y = tuned_pull(positives, negatives, temperature=temperature, k1=k1, k2=k2)
    return p - mean_weight(positives) - y


# -------------------------------------------------------------------------------------------- formulas of the theorems


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


# ------------------------------------------------------------------------------------------------ checks of the lemmas


def _batches(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, float]]:
    """Unit rows, their labels (classes of unequal sizes), and a temperature."""
    for dim, tau in ((3, 0.1), (8, 0.07), (16, 0.5)):
        labels = torch.tensor([0, 1, 2, 0, 1, 0, 0, 1, 2, 1, 0])
        yield on_sphere(generator, len(labels), dim), labels, tau


def _as_anchor(loss: Callable[..., Tensor], z: Tensor, labels: Tensor) -> Tensor:
    """∂L_i/∂z_i of a loss by its own backward, one anchor at a time: in L_i, z_i is the anchor alone."""
    result = []
    for i in range(len(z)):
        rows = z.detach().requires_grad_()
        result.append(torch.autograd.grad(loss(rows, labels)[i], rows)[0][i])
    return torch.stack(result)


def _by_formula(gradient: Callable[..., Tensor], z: Tensor, labels: Tensor, **tuning: float) -> Tensor:
    result = []
    for i in range(len(z)):
        same = labels == labels[i]
        same[i] = False
        result.append(gradient(z[i], z[same], z[labels != labels[i]], **tuning))
    return torch.stack(result)


@check("TCL, Lemma 1", "SupCon: ∂L_i/∂z_i = (1/τ)[Σ_p z_p (P^s_ip − X_ip) + Σ_n z_n P^s_in]")
def supcon_gradient_is_lemma_1(generator: torch.Generator) -> Iterator[float]:
    """Against the backward of SupConLoss."""
    for z, labels, tau in _batches(generator):
        backward = _as_anchor(SupConLoss(tau, normalize=False, reduction="none"), z, labels)
        yield largest_error(_by_formula(supcon_gradient, z, labels, temperature=tau), backward)


@check("TCL, Lemma 2", "∂L_i/∂z_i = (1/τ)[Σ_p z_p (P^t_ip − X_ip − Y^t_ip) + Σ_n z_n P^t_in]")
def tcl_gradient_is_lemma_2(generator: torch.Generator) -> Iterator[float]:
    """Against the backward of TCLLoss."""
    for z, labels, tau in _batches(generator):
        for k1, k2 in TUNINGS:
            backward = _as_anchor(TCLLoss(tau, k1, k2, normalize=False, reduction="none"), z, labels)
            result = _by_formula(tcl_gradient, z, labels, temperature=tau, k1=k1, k2=k2)
            yield largest_error(result, backward)


@check("TCL, Lemmas 1 and 2", "k1 = 0, k2 = 1: TCL is SupCon, in value and gradient")
def untuned_tcl_is_supcon(generator: torch.Generator) -> Iterator[float]:
    """TCLLoss, (6) and (1) against SupConLoss."""
    for z, labels, tau in _batches(generator):
        supcon = SupConLoss(tau, normalize=False, reduction="none")
        tcl = TCLLoss(tau, 0.0, 1.0, normalize=False, reduction="none")
        yield largest_error(tcl(z, labels), supcon(z, labels))
        result = _by_formula(tcl_gradient, z, labels, temperature=tau, k1=0.0, k2=1.0)
        yield largest_error(result, _as_anchor(supcon, z, labels))
        s = random_similarities(generator, 20, 3), random_similarities(generator, 20, 7)
        yield largest_error(tcl_loss(*s, temperature=tau, k1=0.0, k2=1.0), group_values(supcon, *s))


def _parts(loss: Callable[..., Tensor], w: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Each candidate's part of ∂L_i/∂w_i, ``[A, p + n, D]``, for rows ``w [A, D]`` and candidates ``[A, p, D]`` and
    ``[A, n, D]``. Each similarity uses its own copy of w_i; the parts are the gradients by these copies."""
    c = torch.cat([positives, negatives], 1)
    copies = w[:, None].expand_as(c).clone().requires_grad_()
    s = (copies / copies.norm(dim=-1, keepdim=True) * c).sum(-1)
    p = positives.shape[1]
    return torch.autograd.grad(group_values(loss, s[:, :p], s[:, p:]).sum(), copies)[0]


@check("TCL, proof of Theorem 1", "positive p's part of ∂L_i/∂w_i has length |P−X−Y| √(1−s_ip²)/(τ‖w_i‖)")
def normalisation_scales_positives(generator: torch.Generator) -> Iterator[float]:
    """Against the parts of TCLLoss's backward through w/‖w‖; their sum must be its backward on w."""
    for dim, tau, k1, k2 in ((4, 0.1, 1.0, 1.5), (16, 0.1, 5000.0, 1.0), (16, 0.5, 0.0, 1.0)):
        w = on_sphere(generator, 25, dim) * (0.5 + 3 * torch.rand(25, 1, generator=generator, dtype=torch.float64))
        c, theirs = on_sphere(generator, 12, dim), torch.tensor([0] * 5 + [1] * 7)
        raw = TCLLoss(tau, k1, k2, normalize=False, reduction="none")
        parts = _parts(raw, w, c[:5].expand(25, -1, -1), c[5:].expand(25, -1, -1))
        norm = w.norm(dim=1, keepdim=True)
        s = w @ c.T / norm
        pull = _pull(s[:, :5], s[:, 5:], temperature=tau, k1=k1, k2=k2)
        result = normalised_pull(pull, s[:, :5], temperature=tau, norm=norm)
        yield largest_error(result, parts[:, :5].norm(dim=2))
        leaf = w.clone().requires_grad_()
        loss = TCLLoss(tau, k1, k2, reduction="sum")(leaf, [0] * 25, ref_emb=c, ref_labels=theirs)
        yield largest_error(parts.sum(1), torch.autograd.grad(loss, leaf)[0])


@check("TCL, proof of Theorem 1", "s_ip = 1: no pull through w/‖w‖; s_ip = 0: |P−X−Y|/(τ‖w_i‖)")
def easy_positives_vanish(generator: torch.Generator) -> Iterator[float]:
    """Positives of one anchor at 0, 0.9, 0.99, 0.9999 and 1; SupCon and TCL. At 1 the remaining pull is the error."""
    similarity = torch.tensor([0.0, 0.9, 0.99, 0.9999, 1.0], dtype=torch.float64)
    for tau, k1, k2 in ((0.1, 0.0, 1.0), (0.1, 5000.0, 1.0), (0.5, 1.0, 1.5)):
        z, negatives = on_sphere(generator, 20, 8), on_sphere(generator, 20, 6, 8)
        aside = unit((noise := on_sphere(generator, 20, 5, 8)) - (noise * z[:, None]).sum(2, keepdim=True) * z[:, None])
        positives = similarity[:, None] * z[:, None] + (1 - similarity**2).sqrt()[:, None] * aside
        loss = TCLLoss(tau, k1, k2, normalize=False, reduction="none")
        length = _parts(loss, 2 * z, positives, negatives)[:, :5].norm(dim=2)
        s_n = (negatives * z[:, None]).sum(2)
        pull = _pull(similarity.expand(20, -1), s_n, temperature=tau, k1=k1, k2=k2)
        result = normalised_pull(pull, similarity, temperature=tau, norm=torch.full_like(similarity, 2.0))
        yield largest_error(result, length)
        yield largest_error(length[:, 0], pull[:, 0].abs() / (2 * tau))
        yield largest(length[:, -1])
        yield required(bool((length[:, 0] > 0).all()))


# ---------------------------------------------------------------------------------------------- checks of the theorems


def _random(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, float]]:
    """Similarities to the positives ``[A, p]`` and the negatives ``[A, n]``, and a temperature."""
    for p, n in ((1, 1), (4, 20), (9, 3)):
        for tau in (0.07, 0.1, 0.5):
            yield random_similarities(generator, 100, p), random_similarities(generator, 100, n), tau


def _tcl(tau: float, k1: float, k2: float) -> TCLLoss:
    return TCLLoss(tau, k1, k2, normalize=False, reduction="none")


def _loss_terms(
    tau: float, k1: float, k2: float, positives: Tensor, negatives: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """P^t_ip, X − P^t_ip + Y^t_ip and P^t_in of TCLLoss (k1 = 0, k2 = 1: of SupConLoss). The first is in its value,
    L_i = log D − Σ_p s_ip/(τ|P|), the others in its backward."""
    untuned = (k1, k2) == (0.0, 1.0)
    loss = SupConLoss(tau, normalize=False, reduction="none") if untuned else _tcl(tau, k1, k2)
    log_d = group_values(loss, positives, negatives) + positives.mean(1) / tau
    by_positive, by_negative = group_slopes(loss, positives, negatives)
    return (positives / tau - log_d[:, None]).exp(), -tau * by_positive, tau * by_negative


@check("TCL (16)", "P^t_ip < P^s_ip", conditions="k1, k2 ≥ 1")
def tuning_lowers_positive_probability(generator: torch.Generator) -> Iterator[float]:
    """Both as the losses' values have them; the formulas deviate from those by the error."""
    for *s, tau in _random(generator):
        supcon = _loss_terms(tau, 0.0, 1.0, *s)[0]
        yield largest_error(supcon_probability(*s, temperature=tau), supcon)
        for k1, k2 in THEOREM_1_TUNINGS:
            tcl = _loss_terms(tau, k1, k2, *s)[0]
            yield largest_error(positive_probability(*s, temperature=tau, k1=k1, k2=k2), tcl)
            yield required(bool((tcl < supcon).all()))


@check("TCL (17)", "Y^t_ip > 0, and Y^t_ip = 0 without k1", conditions="k1 > 0")
def tuned_pull_is_positive(generator: torch.Generator) -> Iterator[float]:
    """Y is TCLLoss's backward without X and P, which follow from its value."""
    for *s, tau in _random(generator):
        for k1, k2 in (*THEOREM_1_TUNINGS, (0.0, 2.0)):
            p, response, _ = _loss_terms(tau, k1, k2, *s)
            y = tuned_pull(*s, temperature=tau, k1=k1, k2=k2)
            yield largest_error(y, response - mean_weight(s[0]) + p)
            yield required(bool((y > 0).all() if k1 > 0 else (y == 0).all()))


@check("TCL, Theorem 1", "|X − P^t + Y| > |X − P^s|", conditions="k1, k2 ≥ 1; least similar positive")
def tuning_raises_hardest_positive(generator: torch.Generator) -> Iterator[float]:
    """On the losses' own gradients, for every anchor; the formulas deviate from those by the error."""
    for *s, tau in _random(generator):
        supcon, hardest = _loss_terms(tau, 0.0, 1.0, *s)[1].abs(), s[0].argmin(1, keepdim=True)
        yield largest_error(supcon_response(*s, temperature=tau), supcon)
        for k1, k2 in THEOREM_1_TUNINGS:
            tcl = _loss_terms(tau, k1, k2, *s)[1].abs()
            yield largest_error(tcl_response(*s, temperature=tau, k1=k1, k2=k2), tcl)
            yield required(bool((tcl.gather(1, hardest) > supcon.gather(1, hardest)).all()))


@check(
    "TCL, Theorem 1",
    "|X − P^t + Y| > |X − P^s| exactly where P^s + P^t < 2X + Y; elsewhere P^s > X",
    conditions="k1, k2 ≥ 1; any positive",
)
def tuning_can_lower_easy_positives(generator: torch.Generator) -> Iterator[float]:
    """On the losses' own gradients. The theorem must fail for some positives here, and never for the hardest one; the
    error is that of |X − P^t + Y|² − |X − P^s|², as the product (P^s − P^t + Y) · (25) that (25) is read from."""
    for p, tau, k1, k2 in ((4, 0.1, 1.0, 1.5), (9, 0.1, 1.0, 1.5), (4, 0.07, 1.0, 1.0), (4, 0.5, 1.0, 1.5)):
        s = random_similarities(generator, 2000, p), random_similarities(generator, 2000, 10)
        probability, supcon, _ = _loss_terms(tau, 0.0, 1.0, *s)
        tcl = _loss_terms(tau, k1, k2, *s)[1]
        bound = margin(*s, temperature=tau, k1=k1, k2=k2)
        yield largest_error((tcl - supcon) * bound, tcl**2 - supcon**2)
        clear = bound.abs() > 1e-9  # the two sides of (15) are equal at 0
        fails = (tcl.abs() <= supcon.abs()) & clear
        yield required(torch.equal(fails, (bound < 0) & clear))
        yield required(bool(fails.any() and (probability[fails] > mean_weight(s[0])).all()))
        yield required(not bool(fails.gather(1, s[0].argmin(1, keepdim=True)).any()))


@check("TCL, Theorem 2", "P^t_in = e^{s_in/τ}/((D₁ + k1 D₂)/k2 + D₃) rises strictly with k2")
def negatives_rise_with_k2(generator: torch.Generator) -> Iterator[float]:
    """On TCLLoss's own gradient, at every k1; (23) deviates from it by the error."""
    for *s, tau in _random(generator):
        for k1 in K1:
            result = torch.stack([_loss_terms(tau, k1, k2, *s)[2] for k2 in K2])
            formula = torch.stack([negative_response(*s, temperature=tau, k1=k1, k2=k2) for k2 in K2])
            yield largest_error(formula, result)
            yield required(bool((result.diff(dim=0) > 0).all()))


@check("TCL, supplement section 3", "raising k1 lowers P^t_in and P^t_ip strictly")
def probabilities_fall_with_k1(generator: torch.Generator) -> Iterator[float]:
    """P^t_ip as TCLLoss's value has it, P^t_in as its gradient has; (3) and (5) deviate from those by the error."""
    for *s, tau in _random(generator):
        for k2 in K2:
            terms = [_loss_terms(tau, k1, k2, *s) for k1 in K1]
            for which, formula in ((0, positive_probability), (2, negative_probability)):
                result = torch.stack([term[which] for term in terms])
                yield largest_error(torch.stack([formula(*s, temperature=tau, k1=k1, k2=k2) for k1 in K1]), result)
                yield required(bool((result.diff(dim=0) < 0).all()))


@check("TCL, supplement section 3", "raising k2 lowers P^t_ip strictly")
def positive_probability_falls_with_k2(generator: torch.Generator) -> Iterator[float]:
    """As TCLLoss's value has it; (3) deviates from that by the error."""
    for *s, tau in _random(generator):
        for k1 in K1:
            result = torch.stack([_loss_terms(tau, k1, k2, *s)[0] for k2 in K2])
            formula = torch.stack([positive_probability(*s, temperature=tau, k1=k1, k2=k2) for k2 in K2])
            yield largest_error(formula, result)
            yield required(bool((result.diff(dim=0) < 0).all()))


@check(
    "TCL, supplement section 3",
    "raising k2 adds (P^t_ip − Y^t_ip)(1 − D/D') to X − P^t_ip + Y^t_ip",
    conditions="a rise only where P^t_ip > Y^t_ip",
)
def positives_rise_with_k2_where_unsaturated(generator: torch.Generator) -> Iterator[float]:
    """On TCLLoss's own values (for D'/D) and gradients. Rises and falls must both occur, as they do at large k1."""
    for p, n, tau in ((2, 20, 0.1), (4, 20, 0.1), (9, 3, 0.5)):
        s, rises, falls = (random_similarities(generator, 200, p), random_similarities(generator, 200, n)), 0, 0
        for k1 in (1.0, 100.0, 5000.0):
            for k2, larger_k2 in ((1.0, 1.2), (1.0, 1.5), (1.5, 10.0)):
                before, after = _tcl(tau, k1, k2), _tcl(tau, k1, larger_k2)
                growth = (group_values(after, *s) - group_values(before, *s)).exp()[:, None]
                change = _loss_terms(tau, k1, larger_k2, *s)[1] - _loss_terms(tau, k1, k2, *s)[1]
                result = response_change(*s, growth, temperature=tau, k1=k1, k2=k2)
                yield largest_error(result, change)
                rises, falls = rises + int((change > 1e-9).sum()), falls + int((change < -1e-9).sum())
        yield required(rises > 0 and falls > 0)
