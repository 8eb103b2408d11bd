r"""SCE (Denize et al.), supplement sections B and F: what the loss is made of, and why it does not collapse.

z¹ = online, z² = target (no gradient), unit rows; the candidates c_k are the batch's target rows, or the anchor's own
target row followed by a queue. "Own" is k = i (section B; the numbers are ours):

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

λ = 1 is InfoNCE. λ = 0 is ReSSL plus the ceiling, −log(1 − p_ii), which pushes the positive away.

Section F observes that "SCE do not collapse when τ_m → τ thanks to the contrastive aspect", unlike ReSSL. This much of
it can be shown. Let n be the number of candidates, c_i the anchor's own candidate, m_i = Σ_k s_ik c_k the mean of the
others, and the views equal, z¹ = z²:

    (10)  ∂L_ReSSL/∂z¹_i = 0 and L_ReSSL = H(s_i), its bound           at τ_m = τ, for any embeddings
    (11)  ∂L_SCE/∂z¹_i = ((p_ii − λ)/τ)(c_i − m_i)                      at τ_m = τ

(from ∂L/∂z¹_i = (1/τ) Σ_k (p_ik − w_ik) c_k and p_ik = (1 − p_ii) s_ik). So any embedding, collapsed or not, is a
minimum of ReSSL, while SCE's descent takes each row away from the mean of the others as long as p_ii < λ, and towards
it beyond. Where all rows are equal, all gradients vanish by symmetry, but the values differ, at any temperatures:

    (12)  L_ReSSL = log(n−1) = H(s_i);    L_SCE = log n = H(w_i) + KL(w_i ‖ 1/n), above its bound unless λ = 1/n

and that point is unstable. With the rows of a batch near each other, V = Σ_i ‖z_i − z̄‖², and t the time of the gradient
flow of Σ_i L_i on the sphere, with targets that follow,

    (13)  d log V/dt = 2(nλ − 1)/((n−1)τ)                               in the limit of collapse, at any τ_m

λ > 1/n drives the rows apart, fastest InfoNCE; λ = 0, the ceiling, draws them together; for ReSSL the rate is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import entr

from kontrast.losses import InfoNCELoss, ReSSLLoss, SCELoss, sce_terms
from kontrast.sphere import unit
from kontrast.theory._inputs import largest, largest_error, on_sphere
from kontrast.theory.check import check, required

LAMBDAS = (0.0, 0.2, 0.5, 0.9, 1.0)
NEAR = (1e-2, 1e-3, 1e-5)  # how far the rows of (13) are apart


class Relations(NamedTuple):
    """Each anchor's similarities to its candidates, and which of those is its own."""

    online: Tensor  # [N, n]: ⟨z¹_i, c_k⟩
    target: Tensor  # [N, n]: ⟨z²_i, c_k⟩
    is_own: Tensor  # [N, n] bool


# ------------------------------------------------------------------------------------------------ formulas of the loss


def relations(online: Tensor, target: Tensor, queue: Tensor | None = None) -> Relations:
    """The similarities that (1) and (2) are made of.

    >>> relations(torch.eye(2), torch.eye(2), queue=-torch.eye(2)[:1]).is_own
    tensor([[ True, False],
            [ True, False]])
    """
    if queue is None:
        return Relations(online @ target.T, target @ target.T, torch.eye(len(online), dtype=torch.bool))
    is_own = torch.zeros(len(online), 1 + len(queue), dtype=torch.bool)
    is_own[:, 0] = True

    def similarities(x: Tensor) -> Tensor:
        return torch.cat([(x * target).sum(1, keepdim=True), x @ queue.T], 1)

    return Relations(similarities(online), similarities(target), is_own)


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
    e = (r.target / temperature).exp() * ~r.is_own
    return e / e.sum(1, keepdim=True)


def soft_target(r: Relations, *, temperature: float, contrastive_weight: float) -> Tensor:
    """(3): w; ``temperature`` is the target's.

    >>> soft_target(relations(torch.eye(2), torch.eye(2)), temperature=1.0, contrastive_weight=0.9)
    tensor([[0.9000, 0.1000],
            [0.1000, 0.9000]])
    """
    s = target_distribution(r, temperature=temperature)
    return contrastive_weight * r.is_own.to(s.dtype) + (1 - contrastive_weight) * s


def info_nce(r: Relations, *, temperature: float) -> Tensor:
    """(5), per anchor.

    >>> info_nce(relations(torch.eye(2), torch.eye(2)), temperature=1.0)  # log(1 + e) − 1
    tensor([0.3133, 0.3133])
    """
    return -online_distribution(r, temperature=temperature)[r.is_own].log()


def ressl(r: Relations, *, temperature: float, target_temperature: float) -> Tensor:
    """(6), per anchor.

    >>> ressl(relations(torch.eye(3), torch.eye(3)), temperature=1.0, target_temperature=1.0)  # log 2
    tensor([0.6931, 0.6931, 0.6931])
    """
    e = (r.online / temperature).exp() * ~r.is_own
    log_p = (e / e.sum(1, keepdim=True)).log().masked_fill(r.is_own, 0.0)
    return -(target_distribution(r, temperature=target_temperature) * log_p).sum(1)


def ceil(r: Relations, *, temperature: float) -> Tensor:
    """(7), per anchor.

    >>> ceil(relations(torch.eye(2), torch.eye(2)), temperature=1.0)  # log(1 + e)
    tensor([1.3133, 1.3133])
    """
    e = (r.online / temperature).exp()
    return -((e * ~r.is_own).sum(1) / e.sum(1)).log()


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


# ------------------------------------------------------------------------------------------------ formulas of collapse


def ressl_bound(target: Tensor, queue: Tensor | None = None, *, temperature: float) -> Tensor:
    """(10): H(s_i), per anchor.

    >>> ressl_bound(torch.eye(3), temperature=0.1)  # two others, equally far: log 2
    tensor([0.6931, 0.6931, 0.6931])
    """
    s = target_distribution(relations(target, target, queue), temperature=temperature)
    return torch.sum(entr(s), 1)


def gradient_at_equal_views(
    target: Tensor, queue: Tensor | None = None, *, temperature: float, contrastive_weight: float
) -> Tensor:
    """(11): ∂L_SCE/∂z¹_i at z¹ = z² and τ_m = τ.

    >>> gradient_at_equal_views(torch.eye(2), temperature=1.0, contrastive_weight=0.5)  # e/(1 + e) − ½
    tensor([[ 0.2311, -0.2311],
            [-0.2311,  0.2311]])
    """
    r = relations(target, target, queue)
    s = target_distribution(r, temperature=temperature)
    mean = s @ target if queue is None else s[:, 1:] @ queue
    p = online_distribution(r, temperature=temperature)[r.is_own]
    return ((p - contrastive_weight) / temperature)[:, None] * (target - mean)


def collapse_excess(candidates: int, contrastive_weight: float) -> float:
    """(12): KL(w ‖ 1/n), how far above its bound SCE is where all rows are equal.

    >>> round(collapse_excess(3, contrastive_weight=1.0), 4)  # log 3
    1.0986
    >>> collapse_excess(4, contrastive_weight=0.25)
    0.0
    """
    n, lam = candidates, contrastive_weight
    w = torch.tensor([[lam] + [(1 - lam) / (n - 1)] * (n - 1)], dtype=torch.float64)
    return float(divergence(w, torch.full_like(w, 1 / n)))


def spreading_rate(candidates: int, *, temperature: float, contrastive_weight: float) -> float:
    """(13): d log V/dt at collapse.

    >>> spreading_rate(5, temperature=0.1, contrastive_weight=0.2)
    0.0
    >>> spreading_rate(5, temperature=0.1, contrastive_weight=1.0)  # InfoNCE: 2/τ
    20.0
    """
    n, lam = candidates, contrastive_weight
    return 2 * (n * lam - 1) / ((n - 1) * temperature)


# -------------------------------------------------------------------------------------------------- checks of the loss


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


@check("SCE, supplement B", "L_SCE = −Σ_k w_ik log p_ik with w_ik = λ 1[i=k] + (1−λ) s_ik")
def sce_is_cross_entropy(generator: torch.Generator) -> Iterator[float]:
    """SCELoss against (4) as it is written."""
    for case in _cases(generator):
        for lam in LAMBDAS:
            options = {"temperature": case.tau, "target_temperature": case.tau_m, "contrastive_weight": lam}
            yield largest_error(sce_loss(relations(*case.rows), **options), _sce(case, lam))


@check("SCE, Proposition 1", "L_SCE = λ L_InfoNCE + (1−λ)(L_ReSSL + L_Ceil)")
def sce_decomposition(generator: torch.Generator) -> Iterator[float]:
    """SCELoss against (5), (6) and (7) as they are written."""
    for case in _cases(generator):
        r = relations(*case.rows)
        soft = ressl(r, temperature=case.tau, target_temperature=case.tau_m) + ceil(r, temperature=case.tau)
        for lam in LAMBDAS:
            parts = lam * info_nce(r, temperature=case.tau) + (1 - lam) * soft
            yield largest_error(parts, _sce(case, lam))


@check("SCE, Proposition 1", "losses.sce_terms are L_InfoNCE, L_ReSSL and L_Ceil, and combine to SCELoss")
def sce_terms_are_the_parts(generator: torch.Generator) -> Iterator[float]:
    """Each against its formula; ReSSLLoss too."""
    for case in _cases(generator):
        r, tau, tau_m = relations(*case.rows), case.tau, case.tau_m
        terms = sce_terms(*case.rows, temperature=tau, target_temperature=tau_m)
        relational = ressl(r, temperature=tau, target_temperature=tau_m)
        yield largest_error(info_nce(r, temperature=tau), terms.info_nce)
        yield largest_error(relational, terms.ressl)
        yield largest_error(ceil(r, temperature=tau), terms.ceil)
        yield largest_error(relational, ReSSLLoss(tau, tau_m, reduction="none")(*case.rows))
        yield from (largest_error(terms.combine(contrastive_weight=x), _sce(case, x)) for x in LAMBDAS)


@check("SCE, supplement B", "λ = 1: L_SCE = L_InfoNCE")
def sce_with_full_weight_is_infonce(generator: torch.Generator) -> Iterator[float]:
    """SCELoss and (4) against InfoNCELoss, whose negatives are the batch or the queue; τ_m does not matter."""
    for case in _cases(generator):
        contrast = InfoNCELoss(case.tau, reduction="none")(*case.rows)
        options = {"temperature": case.tau, "target_temperature": case.tau_m, "contrastive_weight": 1.0}
        result = sce_loss(relations(*case.rows), **options)
        yield largest_error(_sce(case, 1.0), contrast)
        yield largest_error(result, contrast)


@check("SCE, Proposition 1", "λ = 0: L_SCE − L_ReSSL = L_Ceil = −log(1 − p_ii) > 0")
def sce_without_contrast_is_not_ressl(generator: torch.Generator) -> Iterator[float]:
    """The difference of SCELoss and ReSSLLoss against (7). An anchor's ceiling can be as small as p_ii; it must be
    above zero in the formula, and in the losses on average."""
    for case in _cases(generator):
        difference = _sce(case, 0.0) - ReSSLLoss(case.tau, case.tau_m, reduction="none")(*case.rows)
        r = relations(*case.rows)
        ceiling, p = ceil(r, temperature=case.tau), online_distribution(r, temperature=case.tau)[r.is_own]
        yield largest_error(ceiling, difference)
        yield largest_error((-ceiling).exp(), 1 - p)
        yield required(bool((p > 0).all() and difference.mean() > 1e-9))


@check("SCE, supplement B", "L_SCE − H(w_i) = KL(w_i ‖ p_i) ≥ 0, and 0 only where p_i = w_i")
def sce_is_at_least_target_entropy(generator: torch.Generator) -> Iterator[float]:
    """SCELoss against the entropy of (3). Online rows (not normalised) whose p is w must make the difference vanish."""
    for case in _cases(generator):
        r = relations(*case.rows)
        for lam in LAMBDAS:
            w = soft_target(r, temperature=case.tau_m, contrastive_weight=lam)
            excess = _sce(case, lam) - entr(w).sum(1)
            yield largest_error(divergence(w, online_distribution(r, temperature=case.tau)), excess)
            yield required(bool((excess > 0).all()))
    for tau, tau_m, lam in ((0.1, 0.1, 0.5), (0.1, 0.05, 0.9), (0.5, 0.2, 0.2)):
        target = on_sphere(generator, 8, 24)
        w = soft_target(relations(target, target), temperature=tau_m, contrastive_weight=lam)
        online = tau * w.log() @ torch.linalg.pinv(target).T  # ⟨z¹_i, z²_k⟩ = τ log w_ik
        value = SCELoss(tau, tau_m, lam, normalize=False, reduction="none")(online, target)
        yield largest_error(value, entr(w).sum(1))


# -------------------------------------------------------------------------------------------------- checks of collapse


def _targets(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor | None, float]]:
    """Target rows, a queue or none, and a temperature."""
    for tau in (0.07, 0.1, 0.5):
        for size, queue_size, dim in ((3, 0, 3), (16, 0, 8), (9, 2, 4), (12, 30, 16)):
            queue = on_sphere(generator, queue_size, dim) if queue_size else None
            yield on_sphere(generator, size, dim), queue, tau


def _backward_at_equal_views(loss: Callable[..., Tensor], z: Tensor, queue: Tensor | None) -> Tensor:
    """∂L_i/∂z¹_i at z¹ = z² = z, by the loss's own backward (the targets get none)."""
    online = z.clone().requires_grad_()
    return torch.autograd.grad(loss(online, z, queue).sum(), online)[0]


@check("SCE, supplement F", "equal views: ∂L_ReSSL/∂z¹ = 0 and L_ReSSL = H(s)", conditions="τ_m = τ")
def ressl_is_content_with_equal_views(generator: torch.Generator) -> Iterator[float]:
    """The gradient and the value of ReSSLLoss; with a sharper target the gradient must not vanish."""
    for z, queue, tau in _targets(generator):
        loss = ReSSLLoss(tau, tau, normalize=False, reduction="none")
        yield largest(_backward_at_equal_views(loss, z, queue))
        yield largest_error(ressl_bound(z, queue, temperature=tau), loss(z, z, queue))
        sharper = _backward_at_equal_views(ReSSLLoss(tau, tau / 2, normalize=False, reduction="none"), z, queue)
        few = len(z if queue is None else queue) < 10  # both distributions can be all on one of them
        yield required(few or float(sharper.norm(dim=1).mean()) > 1e-3)


@check("SCE, supplement F", "equal views: ∂L_SCE/∂z¹_i = ((p_ii − λ)/τ)(c_i − m_i)", conditions="τ_m = τ")
def sce_learns_from_equal_views(generator: torch.Generator) -> Iterator[float]:
    """Against the backward of SCELoss. It must not vanish for 0 < λ < 1; at λ = 1 it may where p_ii ≈ 1, far apart."""
    for z, queue, tau in _targets(generator):
        for lam in LAMBDAS:
            backward = _backward_at_equal_views(SCELoss(tau, tau, lam, normalize=False, reduction="none"), z, queue)
            result = gradient_at_equal_views(z, queue, temperature=tau, contrastive_weight=lam)
            yield largest_error(result, backward)
            yield required(lam in (0.0, 1.0) or float(backward.norm(dim=1).mean()) > 1e-3)


@check("SCE, supplement F", "all rows equal: L_ReSSL = H(s); L_SCE = H(w) + KL(w ‖ 1/n) > H(w)")
def sce_is_above_its_bound_at_collapse(generator: torch.Generator) -> Iterator[float]:
    """The values of both losses at any temperatures; (12) must be above 0, and 0 for λ = 1/n."""
    for n, queue_size in ((2, 0), (8, 0), (5, 20)):
        z = on_sphere(generator, 1, 6).expand(n, -1)
        queue = z[:1].expand(queue_size, -1) if queue_size else None
        candidates = 1 + queue_size if queue_size else n
        r = relations(z, z, queue)
        for tau, tau_m in ((0.1, 0.1), (0.1, 0.04), (0.2, 0.1)):
            relational = ReSSLLoss(tau, tau_m, reduction="none")(z, z, queue)
            yield largest_error(ressl_bound(z, queue, temperature=tau_m), relational)
            yield largest_error(torch.full_like(relational, math.log(candidates - 1)), relational)
            for lam in (*LAMBDAS, 1 / candidates):
                bound = entr(soft_target(r, temperature=tau_m, contrastive_weight=lam)).sum(1)
                value = SCELoss(tau, tau_m, lam, reduction="none")(z, z, queue)
                excess = collapse_excess(candidates, lam)
                yield largest_error(bound + excess, value)
                yield largest_error(torch.full_like(value, math.log(candidates)), value)
                yield required(abs(excess) < 1e-12 if lam == 1 / candidates else excess > 1e-3)


@check("SCE, supplement F", "near collapse: d log V/dt = 2(nλ − 1)/((n−1)τ); for ReSSL 0", tolerance=1e-8)
def sce_leaves_collapse(generator: torch.Generator) -> Iterator[float]:
    """V's change along the losses' own descent direction, through the normalisation, in units of 2/τ, at the smallest
    distance; from the largest to the next the error must fall with the square of the distance."""
    for n, dim, tau, tau_m in ((3, 4, 0.1, 0.1), (8, 5, 0.1, 0.05), (16, 32, 0.5, 0.5)):
        centre, aside = on_sphere(generator, 1, dim), on_sphere(generator, n, dim)
        for lam in (None, 0.0, 0.5, 1.0):
            rate = 0.0 if lam is None else spreading_rate(n, temperature=tau, contrastive_weight=lam)
            off = [abs(_rate(unit(centre + near * aside), tau, tau_m, lam) - rate) * tau / 2 for near in NEAR]
            yield off[-1]
            yield required(all(x <= off[0] / 50 + 1e-9 for x in off[1:]))


def _rate(z: Tensor, tau: float, tau_m: float, weight: float | None) -> float:
    """d log V/dt of SCELoss, or of ReSSLLoss."""
    loss = ReSSLLoss(tau, tau_m) if weight is None else SCELoss(tau, tau_m, weight)
    loss.reduction = "none"
    velocity = -_backward_at_equal_views(loss, z, None)
    away = z - z.mean(0)
    return float(2 * (away * velocity).sum() / away.square().sum())
