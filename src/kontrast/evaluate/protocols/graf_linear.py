r"""Graf et al.'s retrained linear classifier.

    (1)  SGD on the cross-entropy of W z (no bias), without momentum, weight decay 1e-3, for T = 5,000 iterations
    (2)  η_i = 0.1 ((T − i)/T)⁵,   batches of 256 rows drawn with replacement

(``retrained_linear`` of the published code, the one its stored table uses; 1e-3 stands there as 10e-4. W starts as
torch's Linear does, uniform in ±1/√D.)

Deviates: features are computed once, without augmentation. They are put on the unit sphere, where the paper's SC
network has them; ``normalize=False`` for encoders trained with cross-entropy.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.checks import number, whole_number
from kontrast.data import generator
from kontrast.evaluate.protocol import Protocol, limit_rows
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject
from kontrast.sphere import directions

START, BATCH = 101, 102  # streams of the draws


@dataclass(frozen=True, kw_only=True)
class GrafLinear(Protocol):
    """The classifier (1), (2); every number is an option, and the protocol's words show it.

    >>> GrafLinear().iterations
    5000
    """

    iterations: int = 5000
    learning_rate: float = 0.1
    weight_decay: float = 1e-3
    batch_size: int = 256
    normalize: bool = True
    limit: int | None = None
    name = "graf-linear"

    def __post_init__(self) -> None:
        whole_number("iterations", self.iterations, least=1)
        whole_number("batch_size", self.batch_size, least=1)
        number("learning_rate", self.learning_rate, above=0)
        number("weight_decay", self.weight_decay, least=0)

    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Train, then test once."""
        train, test = subject.features(progress)
        x, y = limit_rows(train, subject.train_labels, self.limit, seed)
        z, z_test = (directions(v) if self.normalize else v for v in (x, test))
        w = self.fit(z, y, subject.num_classes, seed=seed, progress=progress)
        kind = "unit features" if self.normalize else "features as they are"
        words = (
            f"linear classifier, SGD {self.iterations:,} iterations, lr {self.learning_rate:g}·((T−i)/T)⁵, wd "
            f"{self.weight_decay:g}, batch {self.batch_size} with replacement, {kind}, no bias (Graf et al., retrained)"
        )
        about = self.about(subject, words, seed=seed, train_rows=len(y), details={"iterations": self.iterations})
        return Result.of_scores(z_test @ w.T, subject.test_labels, **about)

    @torch.no_grad()
    def fit(self, z: Tensor, labels: Tensor, num_classes: int, *, seed: int, progress: Progress | None) -> Tensor:
        """The weights ``[K, D]``."""
        total, most = self.iterations, z.shape[1] ** -0.5
        w = torch.empty(num_classes, z.shape[1]).uniform_(-most, most, generator=generator(seed, START))
        draw = generator(seed, BATCH)
        place = torch.arange(self.batch_size)
        for i in range(total):
            rows = torch.randint(len(z), (self.batch_size,), generator=draw)
            batch = z[rows]
            p = (batch @ w.T).softmax(1)
            p[place, labels[rows]] -= 1.0
            eta = self.learning_rate * ((total - i) / total) ** 5  # (2)
            w.mul_(1 - eta * self.weight_decay).addmm_(p.T, batch, alpha=-eta / len(batch))  # (1)
            if progress is not None and (i + 1) % 500 == 0:
                progress(self.name, i + 1, total)
        return w
