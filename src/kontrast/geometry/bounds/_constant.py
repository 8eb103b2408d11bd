r"""The best that one embedding for all samples can do: what a classifier's loss is when everything has collapsed.

    (1)  min_{‖z‖ ≤ ρ}  log Σ_c e^{⟨w_c, z⟩} − Σ_c π_c ⟨w_c, z⟩,      gradient Wᵀ(softmax(Wz) − π)

π are the classes' shares. It is convex, so accelerated projected gradient descent finds it (Beck & Teboulle); it is at
least the entropy of π, and log K for balanced classes and weights about the origin.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def best_constant(weight: Tensor, shares: Sequence[float], radius: float, *, steps: int = 1000) -> float:
    """(1), for weights ``[K, D]``."""
    w = weight.detach().double().cpu()
    pi = torch.tensor(list(shares), dtype=torch.float64)
    # Only the span of W matters: its K coordinates instead of D.
    _, s, v = torch.linalg.svd(w, full_matrices=False)
    w = w @ v.T
    rate = 2.0 / max(float(s[0]) ** 2, 1e-300)  # the softmax's curvature is at most 1/2
    z = ahead = torch.zeros(w.shape[1], dtype=torch.float64)
    momentum = 1.0
    for _ in range(steps):
        logits = w @ ahead
        new = ahead - rate * (w.T @ (logits.softmax(0) - pi))
        new = new * min(1.0, radius / max(float(new.norm()), 1e-300))
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = new + (momentum - 1) / following * (new - z)
        moved = float((new - z).norm())
        z, momentum = new, following
        if moved <= 1e-12 * max(radius, 1e-300):
            break
    return float((w @ z).logsumexp(0) - pi @ (w @ z))
