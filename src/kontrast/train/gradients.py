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
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from kontrast.data.loader import Stream, seed_of
from kontrast.methods import Method, ViewBatch
from kontrast.train.precision import Precision


def backward(
    method: Method, batch: ViewBatch, *, pieces: int = 1, precision: Precision | None = None, rank: int = 0
) -> Tensor:
    """Adds the gradient of the batch's loss to every parameter; the loss, without gradient, comes back.

    ``pieces`` is the number of micro-batches, the same on every rank. What a network draws (dropout) depends on the
    batch's seed, the rank and the piece.

    >>> from kontrast import methods, models
    >>> def made():
    ...     encoder = models.encoder("mlp", in_features=4, features=8, batch_norm=False, seed=0)
    ...     return methods.method("supcon", encoder, models.head("none", in_dim=8))
    >>> batch = ViewBatch(torch.randn(12, 2, 4, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3)
    >>> whole, cached = made(), made()
    >>> bool((backward(whole, batch) - backward(cached, batch, pieces=4)).abs() < 1e-6)
    True
    >>> pairs = zip(whole.parameters(), cached.parameters())
    >>> max(float((p.grad - q.grad).abs().max()) for p, q in pairs) < 1e-6
    True
    """
    precision = precision or Precision("float32", batch.views.device)
    method.check(batch)
    if pieces <= 1:
        _seed(batch, rank, 0)
        with precision.autocast():
            loss = method.step(batch)["loss"]
        precision.scale(loss).backward()  # type: ignore[no-untyped-call]
        return loss.detach()
    views = batch.views.tensor_split(pieces)
    with torch.no_grad(), unmoved(*method.learning), precision.autocast():
        embedded = []
        for i, piece in enumerate(views):
            _seed(batch, rank, i)
            embedded.append(method.embed(piece))  # (1)
    keys = []
    with precision.autocast():
        for i, piece in enumerate(views):
            _seed(batch, rank, pieces + i)
            keys.append(method.keys(piece, seed_of(batch.seed, i)))
    targets = torch.cat([key for key in keys if key is not None]) if keys[0] is not None else None
    z = torch.cat(embedded).float().requires_grad_()
    with precision.autocast():
        loss = method.objective(z, targets, batch)
    precision.scale(loss).backward()  # type: ignore[no-untyped-call]  # (2)
    method.remember(z, targets, batch)
    assert z.grad is not None
    for i, (piece, gradient) in enumerate(zip(views, z.grad.tensor_split(pieces), strict=True)):
        _seed(batch, rank, i)
        with precision.autocast():
            again = method.embed(piece)
        again.backward(gradient.to(again.dtype))  # type: ignore[no-untyped-call]  # (3)
    return loss.detach()


def _seed(batch: ViewBatch, rank: int, piece: int) -> None:
    """What the network draws from here on depends on nothing but this; a run can go on at any step."""
    seed, device = seed_of(batch.seed, Stream.NETWORK, rank, piece), batch.views.device
    torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every kind of device: hundreds of times as long
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(seed)


@contextmanager
def unmoved(*modules: nn.Module) -> Iterator[None]:
    """The modules' buffers (running statistics) are put back at the end."""
    buffers = [buffer for module in modules for buffer in module.buffers()]
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, old in zip(buffers, before, strict=True):
                buffer.copy_(old)
