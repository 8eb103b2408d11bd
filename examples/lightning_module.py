"""A loss of kontrast in a LightningModule: SupCon on fashion-mini. About a minute on a CPU.

    pip install kontrast pytorch-lightning
    python examples/lightning_module.py [--steps 200] [--limit 2000] [--devices 2]

On several devices (``strategy="ddp"``) the loss gathers the embeddings and labels of all ranks, returns the value of
the whole batch, and scales its gradient for DDP's averaging. So

- set ``sync_batchnorm=True`` on GPUs, so that batch norm uses the statistics of all ranks; on CPUs, for which Lightning
  has no such option, use ``models.sync_batch_norm(network)``;
- do not call ``self.all_gather`` before the loss, and leave its ``gather_distributed`` as it is;
- keep a loss with weights (``CrossEntropyLoss``) as an attribute of the module, as here, so that DDP includes it.

``accumulate_grad_batches`` does not make a contrastive batch larger: each part has only its own negatives.
"""

from __future__ import annotations

import argparse

import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from kontrast import augment, data, evaluate, losses, models


class SupCon(lightning.LightningModule):
    """Encoder and head, learned with the supervised contrastive loss."""

    def __init__(self, dataset: data.DataSet, temperature: float = 0.1, lr: float = 0.2, seed: int = 0) -> None:
        super().__init__()
        crop = augment.preset("crop-flip", size=28, padding=4, mean=dataset.mean, std=dataset.std)
        self.views = augment.Views([crop, crop])
        self.encoder = models.encoder("small-resnet", in_channels=1, image_size=28, seed=seed)
        self.head = models.head("tcl", in_dim=self.encoder.feature_dim, seed=seed)
        self.loss = losses.SupConLoss(temperature)
        self.lr, self.seed = lr, seed

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, 1, 28, 28]`` → embeddings ``[N, 128]``."""
        return self.head(self.encoder(images))  # type: ignore[no-any-return]

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        """Two views of each image, through the network, into the loss."""
        images, labels = batch
        draws = data.generator(self.seed, data.Stream.AUGMENT, self.global_step, self.global_rank)
        views = self.views(images, draws)  # [N, 2, 1, 28, 28]
        z = self(views.flatten(0, 1)).unflatten(0, views.shape[:2])  # [N, 2, 128]
        loss: Tensor = self.loss(z, labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Plain SGD."""
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-4)


def knn(encoder: torch.nn.Module, dataset: data.DataSet) -> float:
    """The accuracy of the 20 nearest neighbours in the encoder's features: train rows vote on test rows."""
    return evaluate.evaluate(evaluate.Subject.from_encoder(encoder, dataset), "knn20").value


def main(steps: int = 200, batch_size: int = 256, limit: int | None = None, devices: int = 1) -> tuple[float, float]:
    """Train for some steps; returns the accuracy before and after."""
    dataset = data.load("fashion-mini", limit=limit, test_limit=limit)
    every = torch.arange(len(dataset.train))
    rows = TensorDataset(dataset.train.inputs.read(every), dataset.train.require_labels("SupCon"))
    batches = DataLoader(
        rows, batch_size // devices, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(0)
    )
    module = SupCon(dataset)
    if devices > 1:
        module.encoder = models.sync_batch_norm(module.encoder)
    before = knn(module.encoder, dataset)
    trainer = lightning.Trainer(
        max_steps=steps,
        accelerator="cpu" if not torch.cuda.is_available() else "auto",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, batches)
    after = knn(module.encoder, dataset)
    if trainer.is_global_zero:
        print(f"kNN before: {100 * before:.1f} %")
        print(f"kNN after {trainer.global_step} steps: {100 * after:.1f} %")
    return before, after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--limit", type=int, help="rows of the data, for a quick look")
    parser.add_argument("--devices", type=int, default=1)
    options = parser.parse_args()
    main(options.steps, limit=options.limit, devices=options.devices)
