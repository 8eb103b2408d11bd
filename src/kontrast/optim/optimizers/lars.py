r"""LARS, layer-wise adaptive rate scaling (You et al.): SGD for very large batches.

Each parameter tensor p, with gradient g, takes steps in proportion to its own length:

    (1)  λ = η ‖p‖ / (‖g‖ + β‖p‖ + ε)                       β = weight_decay, η = eta
    (2)  λ ← min(λ/lr, 1)                                    clip_lr: no layer goes faster than lr itself
    (3)  d = λ (g + β p);   where ‖p‖ = 0 or ‖g‖ = 0:  d = g
    (4)  v ← μ v + d,   p ← p − lr v                         μ = momentum; Nesterov: p ← p − lr (d + μ v)

Biases and norms (what has at most one dimension): with ``exclude_bias_n_norm`` they take d = g, neither scaled nor
decayed; with ``exclude_bias_n_norm_wd`` they are scaled, with β = 0.

These are solo-learn's names and its update (``solo/utils/lars.py``), which come from lightning-bolts. In solo-learn
``exclude_bias_n_norm_wd`` is an option of the training script; here it is one of LARS.

Deviates: solo-learn counts a parameter without dimension (a learned temperature) among the matrices; here it is one of
the biases. sce's published code divides in (1) by ‖g + βp‖, which at its decay of 1e−6 is the same to six digits, and
always leaves biases and norms out: ``exclude_bias_n_norm=True`` is its setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.checks import number
from kontrast.eager import eager
from kontrast.optim.optimizers._base import Groups, groups


@eager
class LARS(torch.optim.Optimizer):
    """LARS, (1)–(4), for a whole group of tensors at a time, without waiting for the device.

    Args:
        module_or_parameters: What is trained, or groups of it (dictionaries, as torch has them); parameters without
            gradient are left out.
        lr: The learning rate.
        momentum: μ, from 0 to below 1.
        weight_decay: β.
        nesterov: Whether the momentum is Nesterov's.
        eta: η.
        eps: ε.
        clip_lr: Whether (2) applies.
        exclude_bias_n_norm: Whether biases and norms take d = g.
        exclude_bias_n_norm_wd: Whether biases and norms are not decayed.

    Raises:
        ValueError: A number is outside its range, or no parameter requires a gradient.

    >>> layer = nn.Linear(4, 4, bias=False)
    >>> before = layer.weight.detach().clone()
    >>> layer.weight.grad = torch.ones(4, 4)
    >>> LARS(layer, lr=1.0, eta=0.001).step()
    >>> step = before - layer.weight.detach()
    >>> round(float(step.norm() / before.norm()), 6)  # a thousandth of its own length, whatever the gradient's
    0.001
    """

    usual_rates = (0.3, 0.4)  # of the papers' recipes, for a batch of 256

    def __init__(
        self,
        module_or_parameters: nn.Module | Iterable[nn.Parameter] | Groups,
        *,
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        eta: float = 1e-3,
        eps: float = 1e-8,
        clip_lr: bool = False,
        exclude_bias_n_norm: bool = False,
        exclude_bias_n_norm_wd: bool = False,
    ) -> None:
        mu = number("momentum", momentum, least=0.0, below=1.0)
        if nesterov and mu == 0:
            raise ValueError("momentum=0: must be above 0 with nesterov=True. Set it, or use nesterov=False")
        defaults = {
            "lr": number("lr", lr, least=0.0),
            "momentum": mu,
            "weight_decay": number("weight_decay", weight_decay, least=0.0),
            "nesterov": bool(nesterov),
            "eta": number("eta", eta, above=0.0),
            "eps": number("eps", eps, least=0.0),
            "clip_lr": bool(clip_lr),
            "scale": True,
        }
        apart = exclude_bias_n_norm or exclude_bias_n_norm_wd
        parameters = groups(module_or_parameters, apart=apart, weight_decay=0.0, scale=not exclude_bias_n_norm)
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step; a parameter without a gradient stays. Returns what ``closure`` returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            p = [x for x in group["params"] if x.grad is not None]
            if p:
                self._move(p, [x.grad for x in p], group)
        return loss

    def _move(self, p: list[Tensor], g: list[Tensor], group: dict[str, Any]) -> None:
        lr, mu = group["lr"], group["momentum"]
        d = self._scale(p, g, group) if group["scale"] else [x.clone() for x in g]
        if mu:
            old = [(self.state[x]["momentum_buffer"], y) for x, y in zip(p, d, strict=True) if self.state[x]]
            if old:
                buffers, steps = zip(*old, strict=True)
                torch._foreach_mul_(buffers, mu)
                torch._foreach_add_(buffers, steps)
            for x, y in zip(p, d, strict=True):
                if not self.state[x]:
                    self.state[x]["momentum_buffer"] = y.clone()
            v = [self.state[x]["momentum_buffer"] for x in p]
            if group["nesterov"]:
                torch._foreach_add_(d, v, alpha=mu)
            else:
                d = v
        torch._foreach_add_(p, d, alpha=-lr)  # (4)

    @staticmethod
    def _scale(p: list[Tensor], g: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        beta = group["weight_decay"]
        p_norm, g_norm = (torch.stack(torch._foreach_norm(x)) for x in (p, g))
        rate = group["eta"] * p_norm / (g_norm + beta * p_norm + group["eps"])  # (1)
        if group["clip_lr"]:
            rate = (rate / group["lr"]).clamp(max=1.0)  # (2); at lr = 0, where nothing moves, ∞ becomes 1
        here = (p_norm > 0) & (g_norm > 0)
        d = torch._foreach_mul(g, list(torch.where(here, rate, 1.0).unbind()))
        if beta:
            torch._foreach_add_(d, torch._foreach_mul(p, list(torch.where(here, rate * beta, 0.0).unbind())))  # (3)
        return list(d)
