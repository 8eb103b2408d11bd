r"""The gradient of a batch: at once, or in pieces that fit memory while the loss sees the whole batch.

A contrastive loss compares every sample with every other, so its batch cannot be cut like a mean's. But it depends on
the network θ only by the embeddings z, and so (gradient caching: Gao et al. 2021)

    (1)  z = f_θ(x), in micro-batches and without gradient
    (2)  g = ∂L(z)/∂z on the whole batch; parameters of the loss itself get their gradient here
    (3)  ∂L/∂θ = Σ_b (∂f_θ(x_b)/∂θ)ᵀ g_b, each micro-batch embedded once more, now with gradient

at the price of one further forward pass. (1) and (3) see the same views and the same random numbers of the network
(dropout): its generator is set anew before each micro-batch from the step's seed.

**Batch norm** normalises each micro-batch by its own mean and variance, in (1) and (3) alike (over all ranks with
``batch_norm: sync``): what it would do on a smaller batch, so with batch norm the gradient is not that of the undivided
batch, and a micro-batch should hold some dozens of samples. Its running statistics move in (3) alone, once a step for
each micro-batch; (1) leaves no trace. Without batch norm (1)–(3) is the undivided gradient to rounding.

Forward passes run in float32, or under autocast to bfloat16 or float16 with the loss scaled (`Precision`); the losses
stay in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.data.loader import Stream, seed_of
from kontrast.methods import Method, ViewBatch

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Precision:
    """How a step is computed; ``float16`` scales the loss so that small gradients survive.

    Args:
        name: ``float32``, ``bfloat16`` or ``float16``.
        device: Where the networks are.

    Raises:
        ValueError: The name is unknown, or the device cannot compute in it.

    >>> Precision("float32", torch.device("cpu")).scale(torch.tensor(2.0))
    tensor(2.)
    """

    def __init__(self, name: str, device: torch.device) -> None:
        if name not in ("float32", *DTYPES):
            raise ValueError(f"train.precision={name!r}: must be float32, bfloat16 or float16")
        if name == "float16" and device.type == "cpu":
            raise ValueError("train.precision=float16: must run on a GPU. Use bfloat16 or float32 on a CPU")
        self.name, self.device = name, device
        self._scaler = torch.amp.GradScaler(device.type) if name == "float16" else None  # type: ignore[attr-defined]

    def autocast(self) -> AbstractContextManager[Any]:
        """The context that forward passes run in."""
        return nullcontext() if self.name == "float32" else torch.autocast(self.device.type, DTYPES[self.name])

    def scale(self, loss: Tensor) -> Tensor:
        """The loss as backward is to take it."""
        return loss if self._scaler is None else self._scaler.scale(loss)

    def clip(self, optimiser: torch.optim.Optimizer, most: float) -> Tensor:
        """Shorten the gradient of all parameters together to a norm of at most ``most``; before `step`.

        Args:
            optimiser: Its parameters are meant; with float16 their gradients are unscaled first.
            most: The largest norm.

        Returns:
            The norm before.

        >>> layer = torch.nn.Linear(1, 1, bias=False)
        >>> layer.weight.grad = torch.full((1, 1), 8.0)
        >>> optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
        >>> Precision("float32", torch.device("cpu")).clip(optimiser, most=2.0), layer.weight.grad.round(decimals=4)
        (tensor(8.), tensor([[2.]]))
        """
        if self._scaler is not None:
            self._scaler.unscale_(optimiser)
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        return nn.utils.clip_grad_norm_(parameters, most)

    def step(self, optimiser: torch.optim.Optimizer) -> None:
        """The optimiser's step, on unscaled gradients; left out if they overflowed."""
        if self._scaler is None:
            optimiser.step()
            return
        self._scaler.step(optimiser)
        self._scaler.update()

    def state_dict(self) -> dict[str, Any]:
        """The scale, for a checkpoint."""
        return {} if self._scaler is None else self._scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint."""
        if self._scaler is not None and state:
            self._scaler.load_state_dict(state)


def backward(
    method: Method, batch: ViewBatch, *, pieces: int = 1, precision: Precision | None = None, rank: int = 0
) -> Tensor:
    """Add the gradient of the batch's loss to every parameter.

    Args:
        method: The method.
        batch: The views of this rank.
        pieces: The number of micro-batches, the same on every rank.
        precision: How forward passes are computed; float32 by default.
        rank: Of this process. What a network draws (dropout) depends on the batch's seed, the rank and the piece.

    Returns:
        The loss, without gradient.

    >>> from kontrast import methods, models
    >>> def small_method():
    ...     encoder = models.encoder("mlp", in_features=4, features=8, batch_norm=False, seed=0)
    ...     return methods.method("supcon", encoder, models.head("none", in_dim=8))
    >>> batch = ViewBatch(torch.randn(12, 2, 4, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3)
    >>> whole, cached = small_method(), small_method()
    >>> bool((backward(whole, batch) - backward(cached, batch, pieces=4)).abs() < 1e-6)
    True
    >>> pairs = zip(whole.parameters(), cached.parameters())
    >>> max(float((p.grad - q.grad).abs().max()) for p, q in pairs) < 1e-6
    True
    """
    precision = precision or Precision("float32", batch.views.device)
    if pieces <= 1:
        _seed(batch, rank, 0)
        with precision.autocast():
            loss = method.step(batch)["loss"]
        precision.scale(loss).backward()  # type: ignore[no-untyped-call]
        return loss.detach()
    method.check(batch)
    views = batch.views.tensor_split(pieces)
    with torch.no_grad(), unchanged_buffers(*method.embedding_modules), precision.autocast():
        embeddings = []
        for i, piece in enumerate(views):
            _seed(batch, rank, i)
            embeddings.append(method.embed(piece))  # (1)
    keys = []
    with precision.autocast():
        for i, piece in enumerate(views):
            _seed(batch, rank, pieces + i)
            keys.append(method.keys(piece, seed_of(batch.seed, i)))
    targets = torch.cat([key for key in keys if key is not None]) if keys[0] is not None else None
    z = torch.cat(embeddings).float().requires_grad_()
    with precision.autocast():
        loss = method.loss_of(z, targets, batch)
    precision.scale(loss).backward()  # type: ignore[no-untyped-call]  # (2)
    method.remember(z, targets, batch)
    assert z.grad is not None
    for i, (piece, gradient) in enumerate(zip(views, z.grad.tensor_split(pieces), strict=True)):
        _seed(batch, rank, i)
        with precision.autocast():
            again = method.embed(piece)
        if again.requires_grad:  # not where only the loss learns
            again.backward(gradient.to(again.dtype))  # type: ignore[no-untyped-call]  # (3)
    return loss.detach()


def _seed(batch: ViewBatch, rank: int, piece: int) -> None:
    """Seed what the network draws from here on, so that a run can resume at any step."""
    seed, device = seed_of(batch.seed, Stream.NETWORK, rank, piece), batch.views.device
    torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every kind of device: hundreds of times as long
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(seed)


@contextmanager
def unchanged_buffers(*modules: nn.Module) -> Iterator[None]:
    """Restore the modules' buffers (running statistics) at the end."""
    buffers = [buffer for module in modules for buffer in module.buffers()]
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, old in zip(buffers, before, strict=True):
                buffer.copy_(old)
