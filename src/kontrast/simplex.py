r"""Regular simplices in closed form.

K points ζ_1 … ζ_K in R^d (d ≥ K − 1) are a regular simplex of radius ρ centred at the origin iff

    (S1)  Σ_k ζ_k = 0        (S2)  ‖ζ_k‖ = ρ        (S3)  ‖ζ_k − ζ_l‖ is the same for all k ≠ l,

hence ⟨ζ_k, ζ_l⟩ = −ρ²/(K−1) for k ≠ l. (Graf et al., "Dissecting Supervised Contrastive Learning".)

The rows of the centred identity I − 11ᵀ/K have these properties up to scale but live in K dimensions; an
orthonormal basis of the space orthogonal to 1 (Helmert's) brings them to K − 1 coordinates exactly:

    (1)  H_jk = 1/√(j(j+1)) for k ≤ j,   −j/√(j(j+1)) for k = j + 1,   0 beyond,     j = 1 … K−1
    (2)  ζ_k  = ρ √(K/(K−1)) · H_·k

Deviates: the authors' code approximates the simplex by gradient descent on inverse distances and does not
reach it (cosines −.147 … +.121 for K = 100 instead of −.0101); the closed form is exact.
"""

from __future__ import annotations

import torch
from torch import Tensor


def vertices(
    num_classes: int,
    dim: int | None = None,
    *,
    radius: float = 1.0,
    seed: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The K vertices of a regular simplex, one a row, ``[num_classes, dim]``.

    Args:
        num_classes: K, at least 2.
        dim: d, at least K − 1, which is the default.
        radius: ρ.
        seed: Turns the simplex by a random orthonormal frame; without it the simplex lies along the first axes.
        dtype: The type of the result; it is computed in float64.

    Returns:
        The vertices.

    Raises:
        ValueError: There are fewer than two vertices, or no room for them.

    >>> vertices(3)
    tensor([[ 0.8660,  0.5000],
            [-0.8660,  0.5000],
            [ 0.0000, -1.0000]])
    >>> v = vertices(10, 512, seed=0)
    >>> (v @ v.T)[0, 1].item()  # −1/9
    -0.1111...
    """
    if num_classes < 2:
        raise ValueError(f"a simplex needs at least 2 vertices, got num_classes={num_classes}")
    dim = num_classes - 1 if dim is None else dim
    if dim < num_classes - 1:
        raise ValueError(
            f"{num_classes} vertices of a regular simplex need dim ≥ {num_classes - 1} (num_classes − 1), "
            f"got dim={dim}: use a wider embedding or fewer classes"
        )
    k = num_classes
    j = torch.arange(1, k, dtype=torch.float64)
    helmert = torch.ones(k - 1, k, dtype=torch.float64).tril()
    helmert[torch.arange(k - 1), torch.arange(1, k)] = -j
    helmert /= (j * (j + 1)).sqrt()[:, None]  # (1)
    points = torch.zeros(k, dim, dtype=torch.float64)
    points[:, : k - 1] = helmert.T * (radius * (k / (k - 1)) ** 0.5)  # (2)
    if seed is not None:
        generator = torch.Generator().manual_seed(seed)
        gaussian = torch.randn(dim, k - 1, dtype=torch.float64, generator=generator)
        frame = torch.linalg.qr(gaussian).Q
        points = points[:, : k - 1] @ frame.T
    return points.to(dtype)
