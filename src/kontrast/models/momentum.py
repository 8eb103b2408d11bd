r"""A momentum pair: an online network that learns, and a target that follows it slowly.

The target θ̄ starts as a copy of the online θ and takes no gradient. After each of the optimiser's steps, k = 0, 1, …:

    (1)  θ̄ ← m_k θ̄ + (1 − m_k) θ
    (2)  m_k = m                                           constant   (MoCo, ReSSL, sce on small sets)
    (3)  m_k = 1 − (1 − m)(1 + cos(πk/K))/2                cosine: m at first, 1 at step K   (BYOL, sce on ImageNet)

m_k depends on k alone, and k is saved with the pair, so a run that is resumed goes on exactly.

Buffers, the running statistics of batch norm: in training the target normalises with its own batch, so they matter
only when the target is used in eval mode. "average" (the default) moves them by (1) too, and whole numbers are copied:
right whether or not the target ever runs in train mode. "copy" copies all of them. "own" leaves the target its own.
They are matched by name; what DDP and torch.compile put before the names, when either network is wrapped, is left out.

Deviates: the published codes of MoCo, ReSSL and sce do what is called "own" here, which leaves a target that never
ran in train mode with no statistics at all. sce's code never copies the online weights at the start; the paper, its
successor and ours do.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.checks import number, one_of

WRAPPERS = ("module", "_orig_mod")  # where DDP and torch.compile keep the module they wrap


def momentum_at(step: int, *, momentum: float, schedule: str = "constant", total_steps: int | None = None) -> float:
    """The momentum m_k at a step, (2) or (3).

    Args:
        step: k.
        momentum: m.
        schedule: "constant" or "cosine".
        total_steps: K of the cosine, which stays at 1 beyond it.

    Returns:
        m_k.

    Raises:
        ValueError: The schedule is unknown, or the cosine has no ``total_steps``.

    >>> [round(momentum_at(k, momentum=0.99, schedule="cosine", total_steps=100), 4) for k in (0, 50, 100)]
    [0.99, 0.995, 1.0]
    """
    if one_of("schedule", schedule, ("constant", "cosine")) == "constant":
        return momentum
    if total_steps is None or total_steps < 1:
        raise ValueError(f"total_steps={total_steps!r}: must be at least 1 with schedule='cosine'")
    share = min(step / total_steps, 1.0)
    return 1 - (1 - momentum) * (1 + math.cos(math.pi * share)) / 2  # (3)


class MomentumPair(nn.Module):
    """An online network and its target: ``pair(x)``, ``pair.keys(x)`` without gradient, and ``pair.update()`` (1).

    Call ``update`` once after each step of the optimiser. ``steps`` counts these calls and is saved in state_dict.

    Args:
        online: The network that learns; the target is a copy of it.
        momentum: m, from 0 to 1.
        schedule: "constant" (2) or "cosine" (3).
        total_steps: K of the cosine.
        buffers: What happens to the target's buffers at an update: "average", "copy" or "own".

    Raises:
        ValueError: A number is outside its range, or a word is unknown.

    >>> pair = MomentumPair(nn.Linear(2, 1, bias=False), momentum=0.9)
    >>> with torch.no_grad():
    ...     _ = pair.online.weight.fill_(1.0), pair.target.weight.fill_(0.0)
    >>> pair.update()
    0.9
    >>> pair.target.weight
    Parameter containing:
    tensor([[0.1000, 0.1000]])
    """

    steps: Tensor

    def __init__(
        self,
        online: nn.Module,
        momentum: float = 0.99,
        *,
        schedule: str = "constant",
        total_steps: int | None = None,
        buffers: str = "average",
    ) -> None:
        super().__init__()
        momentum = number("momentum", momentum, least=0.0, most=1.0)
        one_of("buffers", buffers, ("average", "copy", "own"))
        momentum_at(0, momentum=momentum, schedule=schedule, total_steps=total_steps)  # raises now, not later
        self.momentum, self.schedule, self.total_steps, self.buffer_rule = momentum, schedule, total_steps, buffers
        self.online = online
        self.target = copy.deepcopy(online).requires_grad_(False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The output of the online network."""
        return self.online(*inputs, **options)

    @torch.no_grad()
    def keys(self, *inputs: Any, **options: Any) -> Any:
        """The output of the target, without gradient."""
        return self.target(*inputs, **options)

    @torch.no_grad()
    def update(self) -> float:
        """Move the target towards the online network (1), in one fused call for all parameters.

        Returns:
            m_k.

        Raises:
            ValueError: The target has buffers that the online network lacks.
        """
        m = momentum_at(int(self.steps), momentum=self.momentum, schedule=self.schedule, total_steps=self.total_steps)
        ours: list[Tensor] = list(self.target.parameters())
        theirs: list[Tensor] = list(self.online.parameters())
        for a, b in self._buffers_of_both() if self.buffer_rule != "own" else ():
            if self.buffer_rule == "average" and a.is_floating_point():
                ours.append(a)
                theirs.append(b)
            else:
                a.copy_(b)
        torch._foreach_lerp_(ours, theirs, 1 - m)  # (1)
        self.steps += 1
        return m

    def _buffers_of_both(self) -> list[tuple[Tensor, Tensor]]:
        """Every buffer of the target and the online one of its name, in whatever order each network has them."""
        online, target = dict(self.online.named_buffers()), dict(self.target.named_buffers())
        if not target.keys() <= online.keys():  # one of them is wrapped
            online, target = ({_bare(name): b for name, b in side.items()} for side in (online, target))
        extra = [name for name in target if name not in online]
        if extra:
            raise ValueError(
                f"buffers={self.buffer_rule!r}: must be 'own' where the target has buffers that the online network "
                f"lacks: {', '.join(extra[:5])}; the online network has {', '.join(list(online)[:5]) or 'none'}. "
                "Change both networks alike, or use buffers='own'"
            )
        return [(buffer, online[name]) for name, buffer in target.items()]

    def extra_repr(self) -> str:
        end = f", total_steps={self.total_steps}" if self.total_steps else ""
        return f"momentum={self.momentum}, schedule={self.schedule!r}{end}, buffers={self.buffer_rule!r}"


def _bare(name: str) -> str:
    """A buffer's name without the parts that wrappers put into it."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)
