r"""SCE, supplement section F: "SCE do not collapse when τ_m → τ thanks to the contrastive aspect", unlike ReSSL.

The paper has it as an observation; here is what of it can be shown. p, s and w are (1) to (3) of `theory.sce`, n the
number of candidates, c_i the anchor's own candidate, m_i = Σ_k s_ik c_k the mean of the others. All where the views are
equal, z¹ = z²:

    (1)  ∂L_ReSSL/∂z¹_i = 0 and L_ReSSL = H(s_i), its bound           at τ_m = τ, whatever the embeddings
    (2)  ∂L_SCE/∂z¹_i = ((p_ii − λ)/τ)(c_i − m_i)                      at τ_m = τ

(from ∂L/∂z¹_i = (1/τ) Σ_k (p_ik − w_ik) c_k and p_ik = (1 − p_ii) s_ik). So ReSSL is content with any embedding,
collapsed or not, while SCE's descent takes each row away from the mean of the others as long as p_ii < λ, and towards
it beyond. Where all rows are equal, all gradients vanish by symmetry, but the values differ, at any temperatures:

    (3)  L_ReSSL = log(n−1) = H(s_i);    L_SCE = log n = H(w_i) + KL(w_i ‖ 1/n), above its bound unless λ = 1/n

and that point is unstable. With the rows of a batch near each other, V = Σ_i ‖z_i − z̄‖², and t the time of the gradient
flow of Σ_i L_i on the sphere, the targets following,

    (4)  d log V/dt = 2(nλ − 1)/((n−1)τ)                                in the limit of collapse, at any τ_m

λ > 1/n drives the rows apart, fastest InfoNCE; λ = 0, the ceiling, draws them together; for ReSSL the rate is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.special import entr

from kontrast.losses import ReSSLLoss, SCELoss
from kontrast.sphere import unit
from kontrast.theory._check import check, required
from kontrast.theory._similarities import largest, largest_error, on_sphere
from kontrast.theory.sce import divergence, online_distribution, relations, soft_target, target_distribution

WEIGHTS = (0.2, 0.5, 0.9, 1.0)  # λ > 0
NEAR = (1e-2, 1e-3, 1e-5)  # how far the rows of (4) are apart

# ------------------------------------------------------------------------------------------------- the formulas


def ressl_bound(target: Tensor, queue: Tensor | None = None, *, temperature: float) -> Tensor:
    """(1): H(s_i), per anchor.

    >>> ressl_bound(torch.eye(3), temperature=0.1)  # two others, equally far: log 2
    tensor([0.6931, 0.6931, 0.6931])
    """
    s = target_distribution(relations(target, target, queue), temperature=temperature)
    bound: Tensor = entr(s).sum(1)
    return bound


def gradient_at_equal_views(
    target: Tensor, queue: Tensor | None = None, *, temperature: float, contrastive_weight: float
) -> Tensor:
    """(2): ∂L_SCE/∂z¹_i at z¹ = z² and τ_m = τ.

    >>> gradient_at_equal_views(torch.eye(2), temperature=1.0, contrastive_weight=0.5)  # e/(1 + e) − ½
    tensor([[ 0.2311, -0.2311],
            [-0.2311,  0.2311]])
    """
    r = relations(target, target, queue)
    s = target_distribution(r, temperature=temperature)
    mean = s @ target if queue is None else s[:, 1:] @ queue
    p = online_distribution(r, temperature=temperature)[r.own]
    return ((p - contrastive_weight) / temperature)[:, None] * (target - mean)


def collapse_excess(candidates: int, contrastive_weight: float) -> float:
    """(3): KL(w ‖ 1/n), how far above its bound SCE is where all rows are equal.

    >>> round(collapse_excess(3, contrastive_weight=1.0), 4)  # log 3
    1.0986
    >>> collapse_excess(4, contrastive_weight=0.25)
    0.0
    """
    n, lam = candidates, contrastive_weight
    w = torch.tensor([[lam] + [(1 - lam) / (n - 1)] * (n - 1)], dtype=torch.float64)
    return float(divergence(w, torch.full_like(w, 1 / n)))


def spreading_rate(candidates: int, *, temperature: float, contrastive_weight: float) -> float:
    """(4): d log V/dt at collapse.

    >>> spreading_rate(5, temperature=0.1, contrastive_weight=0.2)
    0.0
    >>> spreading_rate(5, temperature=0.1, contrastive_weight=1.0)  # InfoNCE: 2/τ
    20.0
    """
    n, lam = candidates, contrastive_weight
    return 2 * (n * lam - 1) / ((n - 1) * temperature)


# --------------------------------------------------------------------------------------------------- the checks


def _random(generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor | None, float]]:
    """Target rows, a queue or none, and a temperature."""
    for tau in (0.07, 0.1, 0.5):
        for size, queue_size, dim in ((3, 0, 3), (16, 0, 8), (9, 2, 4), (12, 30, 16)):
            queue = on_sphere(generator, queue_size, dim) if queue_size else None
            yield on_sphere(generator, size, dim), queue, tau


def _gradient(loss: Callable[..., Tensor], z: Tensor, queue: Tensor | None) -> Tensor:
    """∂L_i/∂z¹_i at z¹ = z² = z, by the loss's own backward (the targets get none)."""
    online = z.clone().requires_grad_()
    return torch.autograd.grad(loss(online, z, queue).sum(), online)[0]


@check("SCE, supplement F", "equal views: ∂L_ReSSL/∂z¹ = 0 and L_ReSSL = H(s)", conditions="τ_m = τ", tolerance=1e-12)
def ressl_is_content_with_equal_views(generator: torch.Generator) -> float:
    """The gradient and the value of ReSSLLoss; with a sharper target the gradient must not vanish."""
    error = 0.0
    for z, queue, tau in _random(generator):
        loss = ReSSLLoss(tau, tau, normalize=False, reduction="none")
        error = max(error, largest(_gradient(loss, z, queue)))
        error = max(error, largest_error(ressl_bound(z, queue, temperature=tau), loss(z, z, queue)))
        sharper = _gradient(ReSSLLoss(tau, tau / 2, normalize=False, reduction="none"), z, queue)
        few = len(z if queue is None else queue) < 10  # both distributions can be all on one of them
        error += required(few or float(sharper.norm(dim=1).mean()) > 1e-3)
    return error


@check(
    "SCE, supplement F", "equal views: ∂L_SCE/∂z¹_i = ((p_ii − λ)/τ)(c_i − m_i)", conditions="τ_m = τ", tolerance=1e-12
)
def sce_learns_from_equal_views(generator: torch.Generator) -> float:
    """Against the backward of SCELoss. It must not vanish for 0 < λ < 1; at λ = 1 it may where p_ii ≈ 1, far apart."""
    error = 0.0
    for z, queue, tau in _random(generator):
        for lam in (0.0, *WEIGHTS):
            measured = _gradient(SCELoss(tau, tau, lam, normalize=False, reduction="none"), z, queue)
            found = gradient_at_equal_views(z, queue, temperature=tau, contrastive_weight=lam)
            error = max(error, largest_error(found, measured))
            error += required(lam in (0.0, 1.0) or float(measured.norm(dim=1).mean()) > 1e-3)
    return error


@check("SCE, supplement F", "all rows equal: L_ReSSL = H(s); L_SCE = H(w) + KL(w ‖ 1/n) > H(w)", tolerance=1e-12)
def sce_is_above_its_bound_at_collapse(generator: torch.Generator) -> float:
    """The values of both losses at any temperatures; (3) must be above 0 but for λ = 1/n, and there 0."""
    error = 0.0
    for n, queue_size in ((2, 0), (8, 0), (5, 20)):
        z = on_sphere(generator, 1, 6).expand(n, -1)
        queue = z[:1].expand(queue_size, -1) if queue_size else None
        candidates = 1 + queue_size if queue_size else n
        r = relations(z, z, queue)
        for tau, tau_m in ((0.1, 0.1), (0.1, 0.04), (0.2, 0.1)):
            relational = ReSSLLoss(tau, tau_m, reduction="none")(z, z, queue)
            error = max(error, largest_error(ressl_bound(z, queue, temperature=tau_m), relational))
            error = max(error, largest_error(torch.full_like(relational, math.log(candidates - 1)), relational))
            for lam in (0.0, *WEIGHTS, 1 / candidates):
                bound = entr(soft_target(r, temperature=tau_m, contrastive_weight=lam)).sum(1)
                value = SCELoss(tau, tau_m, lam, reduction="none")(z, z, queue)
                excess = collapse_excess(candidates, lam)
                error = max(error, largest_error(bound + excess, value))
                error = max(error, largest_error(torch.full_like(value, math.log(candidates)), value))
                error += required(abs(excess) < 1e-12 if lam == 1 / candidates else excess > 1e-3)
    return error


@check("SCE, supplement F", "near collapse: d log V/dt = 2(nλ − 1)/((n−1)τ); for ReSSL 0", tolerance=1e-8)
def sce_leaves_collapse(generator: torch.Generator) -> float:
    """V's change along the losses' own descent direction, through the normalisation, in units of 2/τ, at the smallest
    distance; from the largest to the next the error must fall with the square of the distance."""
    error = 0.0
    for n, dim, tau, tau_m in ((3, 4, 0.1, 0.1), (8, 5, 0.1, 0.05), (16, 32, 0.5, 0.5)):
        centre, aside = on_sphere(generator, 1, dim), on_sphere(generator, n, dim)
        for lam in (None, 0.0, 0.5, 1.0):
            rate = 0.0 if lam is None else spreading_rate(n, temperature=tau, contrastive_weight=lam)
            off = [abs(_rate(unit(centre + near * aside), tau, tau_m, lam) - rate) * tau / 2 for near in NEAR]
            error = max(error, off[-1])
            error += required(all(x <= off[0] / 50 + 1e-9 for x in off[1:]))
    return error


def _rate(z: Tensor, tau: float, tau_m: float, weight: float | None) -> float:
    """d log V/dt of SCELoss, or of ReSSLLoss."""
    loss = ReSSLLoss(tau, tau_m) if weight is None else SCELoss(tau, tau_m, weight)
    loss.reduction = "none"
    velocity = -_gradient(loss, z, None)
    away = z - z.mean(0)
    return float(2 * (away * velocity).sum() / away.square().sum())
