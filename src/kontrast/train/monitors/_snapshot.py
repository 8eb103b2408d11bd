"""What monitors look at: a fixed held-out batch as the networks see it now."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """Features and embeddings of M held-out images, on the CPU, without gradient."""

    features: Tensor  # [M, d], the encoder's output for the plain images
    embeddings: Tensor  # [M, V, D], the head's output for V fixed augmented views of the same images, V ≥ 1
    labels: Tensor | None = None  # [M]
    reference: Tensor | None = None  # [R, d], the encoder's output for training rows
    reference_labels: Tensor | None = None  # [R]
    temperature: float | None = None  # the method's
    k1: float | None = None  # TCL's; None is SupCon's 0
    k2: float | None = None  # TCL's; None is SupCon's 1
    supervised: bool = True  # whether the method's positives are those of the labels; else the views of one image

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.embeddings.ndim != 3 or len(self.features) != len(self.embeddings):
            raise ValueError(
                f"a snapshot has features [M, d] and embeddings [M, V, D] of the same M images; seen features "
                f"{list(self.features.shape)} and embeddings {list(self.embeddings.shape)}"
            )
        if self.labels is not None and self.labels.shape != (len(self.features),):
            raise ValueError(f"labels {list(self.labels.shape)} for {len(self.features)} images: expected one each")

    @property
    def query(self) -> Tensor:
        """The first view's embeddings, ``[M, D]``."""
        return self.embeddings[:, 0]

    @property
    def key(self) -> Tensor:
        """The second view's, ``[M, D]``; of one view the first's."""
        return self.embeddings[:, min(1, self.embeddings.shape[1] - 1)]
