r"""SCE, supplement section B: what the loss is made of.

z¹ = online, z² = target (no gradient), unit rows; the candidates c_k are the batch's target rows, or the anchor's own
target row followed by a queue. "Own" is k = i (Denize et al., section B; the numbers are ours):

    (1)  p_ik = e^{⟨z¹_i, c_k⟩/τ} / Σ_j e^{⟨z¹_i, c_j⟩/τ}
    (2)  s_ik = 1[k≠i] e^{⟨z²_i, c_k⟩/τ_m} / Σ_{j≠i} e^{⟨z²_i, c_j⟩/τ_m}
    (3)  w_ik = λ 1[k=i] + (1−λ) s_ik
    (4)  L_SCE = −Σ_k w_ik log p_ik
    (5)  L_InfoNCE = −log p_ii
    (6)  L_ReSSL = −Σ_{k≠i} s_ik log( e^{⟨z¹_i, c_k⟩/τ} / Σ_{j≠i} e^{⟨z¹_i, c_j⟩/τ} )
    (7)  L_Ceil = −log( Σ_{j≠i} e^{⟨z¹_i, c_j⟩/τ} / Σ_j e^{⟨z¹_i, c_j⟩/τ} )
    (8)  Proposition 1: L_SCE = λ L_InfoNCE + (1−λ)(L_ReSSL + L_Ceil)

A cross-entropy is at least the entropy of its target (from here on not in the paper):

    (9)  L_SCE − H(w_i) = KL(w_i ‖ p_i) ≥ 0, and 0 only where p_i = w_i

λ = 1 is InfoNCE. λ = 0 is ReSSL plus the ceiling, −log(1 − p_ii), which pushes the positive away. What follows for
collapse is in `sce_collapse`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import entr

from kontrast.losses import InfoNCELoss, ReSSLLoss, SCELoss, sce_terms
from kontrast.theory._check import check, required
from kontrast.theory._similarities import largest_error, on_sphere

LAMBDAS = (0.0, 0.2, 0.5, 0.9, 1.0)


class Relations(NamedTuple):
    """Each anchor's similarities to its candidates, and which of those is its own."""

    online: Tensor  # [N, n]: ⟨z¹_i, c_k⟩
    target: Tensor  # [N, n]: ⟨z²_i, c_k⟩
    own: Tensor  # [N, n] bool


# ------------------------------------------------------------------------------------------------- the formulas


def relations(online: Tensor, target: Tensor, queue: Tensor | None = None) -> Relations:
    """The similarities that (1) and (2) are made of.

    >>> relations(torch.eye(2), torch.eye(2), queue=-torch.eye(2)[:1]).own
    tensor([[ True, False],
            [ True, False]])
    """
    if queue is None:
        return Relations(online @ target.T, target @ target.T, torch.eye(len(online), dtype=torch.bool))
    own = torch.zeros(len(online), 1 + len(queue), dtype=torch.bool)
    own[:, 0] = True

    def similarities(x: Tensor) -> Tensor:
        return torch.cat([(x * target).sum(1, keepdim=True), x @ queue.T], 1)

    return Relations(similarities(online), similarities(target), own)


def online_distribution(r: Relations, *, temperature: float) -> Tensor:
    """(1): p.

    >>> online_distribution(relations(torch.eye(2), torch.eye(2)), temperature=1.0)  # e/(1 + e), 1/(1 + e)
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    """
    e = (r.online / temperature).exp()
    return e / e.sum(1, keepdim=True)


def target_distribution(r: Relations, *, temperature: float) -> Tensor:
    """(2): s.

    >>> target_distribution(relations(torch.eye(2), torch.eye(2)), temperature=1.0)
    tensor([[0., 1.],
            [1., 0.]])
    """
    e = (r.target / temperature).exp() * ~r.own
    return e / e.sum(1, keepdim=True)


def soft_target(r: Relations, *, temperature: float, contrastive_weight: float) -> Tensor:
    """(3): w; ``temperature`` is the target's.

    >>> soft_target(relations(torch.eye(2), torch.eye(2)), temperature=1.0, contrastive_weight=0.9)
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    s = target_distribution(r, temperature=temperature)
    return contrastive_weight * r.own.to(s.dtype) + (1 - contrastive_weight) * s


def info_nce(r: Relations, *, temperature: float) -> Tensor:
    """(5), per anchor.

    >>> info_nce(relations(torch.eye(2), torch.eye(2)), temperature=1.0)  # log(1 + e) − 1
    tensor([0.3133, 0.3133])
    """
    return -online_distribution(r, temperature=temperature)[r.own].log()


def ressl(r: Relations, *, temperature: float, target_temperature: float) -> Tensor:
    """(6), per anchor.

    >>> ressl(relations(torch.eye(3), torch.eye(3)), temperature=1.0, target_temperature=1.0)  # log 2
    tensor([0.6931, 0.6931, 0.6931])
    """
    e = (r.online / temperature).exp() * ~r.own
    log_p = (e / e.sum(1, keepdim=True)).log().masked_fill(r.own, 0.0)
    return -(target_distribution(r, temperature=target_temperature) * log_p).sum(1)


def ceil(r: Relations, *, temperature: float) -> Tensor:
    """(7), per anchor.

    >>> ceil(relations(torch.eye(2), torch.eye(2)), temperature=1.0)  # log(1 + e)
    tensor([1.3133, 1.3133])
    """
    e = (r.online / temperature).exp()
    return -((e * ~r.own).sum(1) / e.sum(1)).log()


def sce_loss(r: Relations, *, temperature: float, target_temperature: float, contrastive_weight: float) -> Tensor:
    """(4), per anchor.

    >>> both = relations(torch.eye(2), torch.eye(2))
    >>> sce_loss(both, temperature=1.0, target_temperature=1.0, contrastive_weight=0.5)  # log(1 + e) − ½
    tensor([0.8133, 0.8133])
    """
    w = soft_target(r, temperature=target_temperature, contrastive_weight=contrastive_weight)
    return -(w * online_distribution(r, temperature=temperature).log()).sum(1)


def divergence(w: Tensor, p: Tensor) -> Tensor:
    """(9): KL(w ‖ p) per row, 0 log 0 being 0.

    >>> divergence(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]]))
    tensor([0.6931])
    """
    return (torch.xlogy(w, w) - torch.xlogy(w, p)).sum(1)


# --------------------------------------------------------------------------------------------------- the checks


class _Case(NamedTuple):
    """Rows, and the temperatures they are compared at."""

    online: Tensor
    target: Tensor
    queue: Tensor | None
    tau: float
    tau_m: float

    @property
    def rows(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """What the losses and `relations` take."""
        return self.online, self.target, self.queue


def _cases(generator: torch.Generator) -> Iterator[_Case]:
    """Random rows, in a batch and with a queue; the temperatures of the paper's grid and equal ones."""
    for tau, tau_m in ((0.1, 0.03), (0.1, 0.07), (0.2, 0.1), (0.1, 0.1), (1.0, 0.5)):
        for size, queue_size, dim in ((2, 0, 3), (12, 0, 8), (9, 1, 4), (12, 30, 16)):
            queue = on_sphere(generator, queue_size, dim) if queue_size else None
            yield _Case(on_sphere(generator, size, dim), on_sphere(generator, size, dim), queue, tau, tau_m)


def _sce(case: _Case, weight: float) -> Tensor:
    """The loss itself, per anchor."""
    value: Tensor = SCELoss(case.tau, case.tau_m, weight, reduction="none")(*case.rows)
    return value


@check("SCE, supplement B", "L_SCE = −Σ_k w_ik log p_ik with w_ik = λ 1[i=k] + (1−λ) s_ik", tolerance=1e-12)
def sce_is_cross_entropy(generator: torch.Generator) -> float:
    """SCELoss against (4) as it is written."""
    error = 0.0
    for case in _cases(generator):
        for lam in LAMBDAS:
            options = {"temperature": case.tau, "target_temperature": case.tau_m, "contrastive_weight": lam}
            error = max(error, largest_error(sce_loss(relations(*case.rows), **options), _sce(case, lam)))
    return error


@check("SCE, Proposition 1", "L_SCE = λ L_InfoNCE + (1−λ)(L_ReSSL + L_Ceil)", tolerance=1e-12)
def sce_decomposition(generator: torch.Generator) -> float:
    """SCELoss against (5), (6) and (7) as they are written."""
    error = 0.0
    for case in _cases(generator):
        r = relations(*case.rows)
        soft = ressl(r, temperature=case.tau, target_temperature=case.tau_m) + ceil(r, temperature=case.tau)
        for lam in LAMBDAS:
            parts = lam * info_nce(r, temperature=case.tau) + (1 - lam) * soft
            error = max(error, largest_error(parts, _sce(case, lam)))
    return error


@check(
    "SCE, Proposition 1", "losses.sce_terms are L_InfoNCE, L_ReSSL and L_Ceil, and combine to SCELoss", tolerance=1e-12
)
def sce_terms_are_the_parts(generator: torch.Generator) -> float:
    """Each against its formula; ReSSLLoss too."""
    error = 0.0
    for case in _cases(generator):
        r, tau, tau_m = relations(*case.rows), case.tau, case.tau_m
        terms = sce_terms(*case.rows, temperature=tau, target_temperature=tau_m)
        relational = ressl(r, temperature=tau, target_temperature=tau_m)
        error = max(error, largest_error(info_nce(r, temperature=tau), terms.info_nce))
        error = max(error, largest_error(relational, terms.ressl))
        error = max(error, largest_error(ceil(r, temperature=tau), terms.ceil))
        error = max(error, largest_error(relational, ReSSLLoss(tau, tau_m, reduction="none")(*case.rows)))
        error = max(error, *(largest_error(terms.combine(contrastive_weight=x), _sce(case, x)) for x in LAMBDAS))
    return error


@check("SCE, supplement B", "λ = 1: L_SCE = L_InfoNCE", tolerance=1e-12)
def sce_with_full_weight_is_infonce(generator: torch.Generator) -> float:
    """SCELoss and (4) against InfoNCELoss, whose negatives are the batch or the queue; τ_m does not matter."""
    error = 0.0
    for case in _cases(generator):
        expected = InfoNCELoss(case.tau, reduction="none")(*case.rows)
        options = {"temperature": case.tau, "target_temperature": case.tau_m, "contrastive_weight": 1.0}
        found = sce_loss(relations(*case.rows), **options)
        error = max(error, largest_error(_sce(case, 1.0), expected), largest_error(found, expected))
    return error


@check("SCE, Proposition 1", "λ = 0: L_SCE − L_ReSSL = L_Ceil = −log(1 − p_ii) > 0", tolerance=1e-12)
def sce_without_contrast_is_not_ressl(generator: torch.Generator) -> float:
    """The difference of SCELoss and ReSSLLoss against (7). An anchor's ceiling can be as small as p_ii; it is asked to
    be above zero in the formula, and in the losses on average."""
    error = 0.0
    for case in _cases(generator):
        difference = _sce(case, 0.0) - ReSSLLoss(case.tau, case.tau_m, reduction="none")(*case.rows)
        r = relations(*case.rows)
        ceiling, p = ceil(r, temperature=case.tau), online_distribution(r, temperature=case.tau)[r.own]
        error = max(error, largest_error(ceiling, difference), largest_error((-ceiling).exp(), 1 - p))
        error += required(bool((p > 0).all() and difference.mean() > 1e-9))
    return error


@check("SCE, supplement B", "L_SCE − H(w_i) = KL(w_i ‖ p_i) ≥ 0, and 0 only where p_i = w_i", tolerance=1e-12)
def sce_is_at_least_target_entropy(generator: torch.Generator) -> float:
    """SCELoss against the entropy of (3). Online rows (not normalised) whose p is w must make the difference vanish."""
    error = 0.0
    for case in _cases(generator):
        r = relations(*case.rows)
        for lam in LAMBDAS:
            w = soft_target(r, temperature=case.tau_m, contrastive_weight=lam)
            excess = _sce(case, lam) - entr(w).sum(1)
            error = max(error, largest_error(divergence(w, online_distribution(r, temperature=case.tau)), excess))
            error += required(bool((excess > 0).all()))
    for tau, tau_m, lam in ((0.1, 0.1, 0.5), (0.1, 0.05, 0.9), (0.5, 0.2, 0.2)):
        target = on_sphere(generator, 8, 24)
        w = soft_target(relations(target, target), temperature=tau_m, contrastive_weight=lam)
        online = tau * w.log() @ torch.linalg.pinv(target).T  # ⟨z¹_i, z²_k⟩ = τ log w_ik
        value = SCELoss(tau, tau_m, lam, normalize=False, reduction="none")(online, target)
        error = max(error, largest_error(value, entr(w).sum(1)))
    return error
