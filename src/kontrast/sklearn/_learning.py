"""What the estimator's parameters stand for, and the training of it by the package's own loop.

A loss has a method that trains by it, with labels or without; the rows become a `DataSet` in memory; `Training` runs in
a temporary folder. Nothing here knows scikit-learn.
"""

from __future__ import annotations

import inspect
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kontrast import augment, losses, methods, models
from kontrast.data import DataSet, Split
from kontrast.evaluate.activations import rows_at_once
from kontrast.evaluate.features import checked, frozen
from kontrast.registry import nearest
from kontrast.train import Job, RunFolder, Stopped, Training, checkpoint
from kontrast.train.job import held_out
from kontrast.train.metrics import read_metrics
from kontrast.train.stopping import Patience

DRAWN = 512  # rows that random views are drawn for at once: other numbers would be other draws
SMALL = {"key_parts": 1}  # batches are small here: batch norm over an eighth of one would be noise


@dataclass(frozen=True)
class Learned:
    """A loss by name: the method that trains by it with labels, the one without, and the options it has here."""

    labelled: str | None
    unlabelled: str | None
    options: Mapping[str, Any]


LOSSES = {
    "supcon": Learned("supcon", "simclr", {}),  # two views without labels: NT-Xent is the same number
    "tcl": Learned("tcl", "tcl-self", {}),
    "cross-entropy": Learned("ce", None, {}),
    "simplex-cross-entropy": Learned("ce-fix", None, {}),
    "nt-xent": Learned(None, "simclr", {}),
    "hard-contrastive": Learned(None, "simclr", {"loss": "hard"}),
    "simple-contrastive": Learned(None, "simclr", {"loss": "simple"}),
    "info-nce": Learned(None, "moco", SMALL),
    "ressl": Learned(None, "ressl", SMALL),
    "sce": Learned(None, "sce", SMALL),
}


def method_of(
    loss: str, *, classes: int | None, rows: int, temperature: float | None, params: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """The method that trains by a loss, and its options; ``classes`` is None without labels.

    >>> method_of("supcon", classes=3, rows=100, temperature=0.2, params=None)
    ('supcon', {'temperature': 0.2})
    >>> method_of("supcon", classes=None, rows=100, temperature=None, params=None)
    ('simclr', {})
    >>> method_of("subcon", classes=3, rows=100, temperature=None, params=None)
    Traceback (most recent call last):
        ...
    ValueError: no loss 'subcon'; did you mean 'supcon'? Known: supcon, tcl, cross-entropy, ...
    """
    name = str(loss).replace("_", "-")
    if name not in LOSSES:
        raise ValueError(f"no loss {loss!r}{nearest(name, LOSSES)} Known: {', '.join(LOSSES)}")
    learned = LOSSES[name]
    method = learned.unlabelled if classes is None else learned.labelled or learned.unlabelled
    if method is None:
        free = ", ".join(name for name, other in LOSSES.items() if other.unlabelled)
        raise ValueError(
            f"loss {loss!r} requires y to be passed, but the target y is None; give y, or take one of {free}"
        )
    if classes == 1 and learned.labelled:
        raise ValueError(
            f"y has 1 class, and loss {loss!r} tells classes apart: give at least 2, or no y to learn from views alone"
        )
    options = {**learned.options, **(params or {})}
    known = methods.options_of(method)
    if "queue" in known:
        options.setdefault("queue", min(known["queue"], rows))  # a longer one would hold rows twice
    if temperature is not None:
        if "temperature" not in inspect.signature(losses.FAMILY[name]).parameters:
            raise ValueError(f"temperature is {temperature!r}, and loss {loss!r} has none; leave it None")
        options["temperature"] = temperature
    return method, options


def encoder_of(
    name: str, data: DataSet, *, n_components: int | None, params: Mapping[str, Any] | None, seed: int
) -> models.Encoder:
    """The encoder for these rows; ``auto`` is an MLP for vectors, a small ResNet for images."""
    options = dict(params or {})
    shape = data.train.inputs.shape
    assert shape is not None
    name = ("mlp" if data.kind == "vector" else "small-resnet") if name == "auto" else name
    if data.kind == "vector":
        if name != "mlp":
            if not (str(name).startswith("timm/") or str(name).replace("_", "-") in models.names()):
                raise ValueError(f"no encoder {name!r}{nearest(name, models.names())} X are vectors: take 'mlp'")
            raise ValueError(f"X are vectors of {shape[0]} numbers, and {name!r} takes images; take encoder='mlp'")
        made = models.encoder("mlp", in_features=shape[0], **{"features": n_components or 64, **options}, seed=seed)
    else:
        if n_components is not None and name == "mlp":
            options.setdefault("features", n_components)
        if n_components is not None and name == "small-resnet" and n_components % 4 == 0:
            options.setdefault("width", n_components // 4)
        made = models.encoder(name, in_channels=shape[0], image_size=(shape[1], shape[2]), **options, seed=seed)
    if n_components not in (None, made.feature_dim):
        raise ValueError(
            f"n_components is {n_components}, and encoder {name!r} gives {made.feature_dim} features here; leave it "
            "None, or set the encoder's own width in encoder_params (small-resnet: a multiple of 4)"
        )
    return made


def validation_of(rows: Split, fraction: float, seed: int) -> Tensor:
    """Which rows are held out, bool ``[N]``; a class of one row stays in training."""
    if fraction >= 1:
        raise ValueError(f"validation_fraction is {fraction:g}; expected a share of the rows, above 0 and below 1")
    held = held_out(rows, fraction, seed)
    if rows.labels is not None:
        held &= rows.labels.bincount()[rows.labels] > 1
    if not bool(held.any()):
        raise ValueError(f"no row of {len(rows)} can be held out: every class has one; fit with early_stopping=False")
    return held


@dataclass
class Tolerant(Patience):
    """Patience that a rise of less than ``tol`` does not renew, as in scikit-learn's networks; the best is still kept.

    >>> patience = Tolerant(2, tol=0.1)
    >>> [patience.better(value) for value in (0.5, 0.55, 0.58)], patience.best, patience.over
    ([True, True, True], 0.58, True)
    """

    tol: float = 0.0

    def better(self, value: float, step: int = 0) -> bool:
        """Whether this is the best so far."""
        best, waited = self.best, self.waited
        found = super().better(value, step)
        if found and value < best + self.tol:
            self.waited = waited + 1
        return found


def train(job: Job, folder: RunFolder, *, tol: float) -> list[dict[str, Any]]:
    """Trains the job's method to the end, or to its best validation; the lines of its log."""
    training = Training(job, folder)
    training.state.patience = Tolerant(job.recipe.train.patience, tol=tol)
    try:
        training.run()
    except Stopped as stopped:  # the loop catches signals to save first; here there is nothing to save for
        signal.raise_signal(stopped.signum)
        raise
    if job.recipe.train.patience is not None and folder.best.exists():
        job.method.load_state_dict(checkpoint.load(folder.best)["method"])
    return read_metrics(folder.metrics)


@torch.no_grad()
def encoded(
    encoder: nn.Module,
    rows: Tensor,
    view: augment.Operation,
    *,
    device: torch.device,
    draw: torch.Generator | None = None,
) -> Tensor:
    """``encoder(view(rows))``, a chunk at a time: float32 ``[N, feature_dim]`` on the CPU."""
    size, parts = augment.Operation.size_of(rows), []
    with frozen(encoder, device) as place:
        chunk = rows_at_once(encoder, view(rows[:1].to(place), torch.Generator()))
        for block in torch.split(rows, DRAWN):
            params = view.draw(len(block), size, draw)
            for start in range(0, len(block), chunk):
                part = block[start : start + chunk].to(place)
                h = encoder(view.apply(part, params[start : start + chunk]))
                parts.append(checked(h, len(part)).float().cpu())
    h = torch.cat(parts)
    if not bool(h.isfinite().all()):
        raise ValueError("the encoder gives NaN or infinity: are some of the rows far outside what it was fitted on?")
    return h
