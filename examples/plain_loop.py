"""A training loop of your own with a loss of kontrast: SupCon on fashion-mini. About a minute on a CPU.

    python examples/plain_loop.py [--steps 200] [--limit 2000]

Replace everything but the loss: encoder, augmentation, data. The loss takes embeddings ``[N, V, D]``, V views of each
of N images, and their labels ``[N]``; without labels the views of an image are its positives. Under torch.distributed
it gathers the embeddings of all ranks itself.
"""

from __future__ import annotations

import argparse

import torch

from kontrast import augment, data, evaluate, losses, models


def knn(encoder: torch.nn.Module, dataset: data.DataSet) -> float:
    """The accuracy of the 20 nearest neighbours in the encoder's features: train rows vote on test rows."""
    return evaluate.evaluate(evaluate.Subject.from_encoder(encoder, dataset), "knn20").value


def main(steps: int = 200, batch_size: int = 256, limit: int | None = None, seed: int = 0) -> tuple[float, float]:
    """Train for some steps; returns the accuracy before and after."""
    dataset = data.load("fashion-mini", limit=limit, test_limit=limit)
    crop = augment.preset("crop-flip", size=28, padding=4, mean=dataset.mean, std=dataset.std)
    two_views = augment.Views([crop, crop])

    encoder = models.encoder("small-resnet", in_channels=1, image_size=28, seed=seed)
    head = models.head("tcl", in_dim=encoder.feature_dim, seed=seed)
    network = torch.nn.Sequential(encoder, head)
    loss_of = losses.SupConLoss(temperature=0.1)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)

    before = knn(encoder, dataset)
    print(f"kNN before: {100 * before:.1f} %")
    batches = data.Loader(dataset.train, data.Shuffled(len(dataset.train), batch_size, seed=seed), seed=seed)
    step = 0
    for epoch in range(steps):
        for batch in batches.epoch(epoch):
            views = two_views(batch.inputs, batch.generator())  # [N, 2, 1, 28, 28]
            z = network(views.flatten(0, 1)).unflatten(0, views.shape[:2])  # [N, 2, 128]
            loss = loss_of(z, batch.labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step}: loss {loss.item():.3f}")
            if step == steps:
                after = knn(encoder, dataset)
                print(f"kNN after {steps} steps: {100 * after:.1f} %")
                return before, after
    raise ValueError(f"steps is {steps}; expected at least 1, and a batch of data")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--limit", type=int, help="rows of the data, for a quick look")
    options = parser.parse_args()
    main(options.steps, limit=options.limit)
