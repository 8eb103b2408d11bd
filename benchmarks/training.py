"""Training's images a second beside lightly's loop and the bare encoder, monitors' cost, and a batch beyond memory.

    python benchmarks/training.py            everything (about five minutes on two cores)
    python benchmarks/training.py --quick    a small form (about a minute)

SimCLR on 32×32 RGB images in memory, batches of 256, two views each, SGD. "kontrast train" is the whole loop of the
command: augmentation (strong preset), one forward pass for both views, NT-Xent, step, log, checkpoint at the end; with
and without monitors at their default interval (once an epoch). "lightly" is its documented loop with the same encoder:
SimCLRTransform, DataLoader with 2 workers (kept alive between epochs), its projection head, NTXentLoss, a
forward pass for each view. "bare encoder" is forward, backward and step of the same encoder and head on float tensors
that are ready, with a mean of squares for a loss: what no loop can beat. A call is an epoch; the first of each is not
counted, and they take turns. All of them run in one process that keeps freed memory, as `kontrast train` makes it do
(`kontrast.train.memory`), so the peers have that advantage too.

The large batch is one SupCon step of 6,144 images, 12,288 views, with the small encoder: gradient caching in
micro-batches of 256 beside the whole batch at once, each in a fresh process.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kontrast import methods, models
from kontrast.recipe import Recipe
from kontrast.train import RunFolder, Training, make_job, resolve
from kontrast.train.gradients import backward
from kontrast.train.memory import keep_freed_memory
from measure import Sections, in_fresh_process, markdown, number, peak_megabytes, setting, write_page

BATCH, LARGE, MICRO = 256, 6144, 256
OURS, NO_MONITORS, LIGHTLY, BARE = "kontrast train", "kontrast train, no monitors", "lightly", "bare encoder"
Epoch = Callable[[], object]


def images(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def ours(folder: Path, encoder: str, n: int, *, monitors: bool) -> Epoch:
    """An epoch of the whole loop, in a folder of its own."""
    np.savez(folder / "images.npz", x_train=images(n), x_test=images(512))
    recipe = resolve(
        Recipe.of(
            {
                "name": f"simclr-{encoder}-{monitors}",
                "data": str(folder / "images.npz"),
                "augment": ["strong", "strong"],
                "encoder": encoder,
                "head": {"name": "tcl-ssl", "hidden": 256, "out": 128},
                "method": "simclr",
                "train": {"epochs": 1, "batch_size": BATCH},
                "run": {"out": str(folder), "progress": False, **({} if monitors else {"monitor_every": 0})},
            }
        )
    )
    place = RunFolder.of(recipe)
    place.begin(recipe)
    training = Training(make_job(recipe, torch.device("cpu")), place)

    def epoch() -> None:
        training.state.step = 0
        training.run()

    return epoch


def network(encoder: str) -> nn.Sequential:
    made = models.encoder(encoder, image_size=32, seed=0)
    return nn.Sequential(made, models.head("tcl-ssl", in_dim=made.feature_dim, hidden=256, out=128, seed=0))


def bare(encoder: str, n: int) -> Epoch:
    model = network(encoder)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    ready = torch.randn(2 * BATCH, 3, 32, 32)

    def epoch() -> None:
        for _ in range(n // BATCH):
            optimiser.zero_grad()
            model(ready).square().mean().backward()
            optimiser.step()

    return epoch


def lightly(encoder: str, n: int) -> Epoch | None:
    if importlib.util.find_spec("lightly") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss_module = importlib.import_module("lightly.loss")
        heads = importlib.import_module("lightly.models.modules.heads")
        transforms = importlib.import_module("lightly.transforms")
    from torchvision.transforms.functional import to_pil_image

    backbone = models.encoder(encoder, image_size=32, seed=0)
    model = nn.Sequential(backbone, heads.SimCLRProjectionHead(backbone.feature_dim, 256, 128))
    transform = transforms.SimCLRTransform(input_size=32, cj_strength=0.5, min_scale=0.2)
    pictures = [to_pil_image(image) for image in images(n)]
    data = _Pictures(pictures, transform)
    loader = torch.utils.data.DataLoader(
        data, batch_size=BATCH, shuffle=True, drop_last=True, num_workers=2, persistent_workers=True
    )
    criterion = loss_module.NTXentLoss(temperature=0.1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def epoch() -> None:
        for (first, second), _ in loader:
            loss = criterion(model(first), model(second))
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()

    return epoch


class _Pictures(torch.utils.data.Dataset[Any]):
    def __init__(self, pictures: list[Any], transform: Callable[[Any], Any]) -> None:
        self.pictures, self.transform = pictures, transform

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.transform(self.pictures[index]), 0


def seconds(epochs: dict[str, Epoch], rounds: int) -> dict[str, float]:
    """Median seconds of an epoch of each, taking turns; the first of each is not counted."""
    for epoch in epochs.values():
        epoch()
    times: dict[str, list[float]] = {name: [] for name in epochs}
    for _ in range(rounds):
        for name, epoch in epochs.items():
            start = time.perf_counter()
            epoch()
            times[name].append(time.perf_counter() - start)
    return {name: median(seen) for name, seen in times.items()}


def speeds(encoder: str, n: int, rounds: int) -> dict[str, float]:
    """Images a second of each loop."""
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("with", "without")]
        for place in places:
            place.mkdir()
        epochs = {
            OURS: ours(places[0], encoder, n, monitors=True),
            NO_MONITORS: ours(places[1], encoder, n, monitors=False),
            LIGHTLY: lightly(encoder, n),
            BARE: bare(encoder, n),
        }
        times = seconds({name: epoch for name, epoch in epochs.items() if epoch is not None}, rounds)
    counted = n // BATCH * BATCH
    return {name: counted / t for name, t in times.items()}


def speed_table(encoder: str, n: int, found: dict[str, float]) -> str:
    rows = [[name, number(value), number(value / found[BARE], 2)] for name, value in found.items()]
    title = f"**SimCLR, {encoder}**: epochs of {n:,} images"
    return f"{title}\n\n" + markdown(["", "images/s", "times the bare encoder"], rows)


def large_step(pieces: int, count: int) -> Epoch:
    """One SupCon step on ``count`` images, two views each, with gradient caching if there are several pieces."""
    encoder = models.encoder("small-resnet", image_size=32, seed=0)
    head = models.head("tcl", in_dim=encoder.feature_dim, seed=0)
    method = methods.method("supcon", encoder, head)
    optimiser = torch.optim.SGD(method.parameters(), lr=0.1, momentum=0.9, fused=True)
    views = torch.randn(count, 2, 3, 32, 32)
    labels = torch.arange(count) % 10

    def step() -> Tensor:
        loss = backward(method, methods.ViewBatch(views, labels), pieces=pieces)
        optimiser.step()
        return loss

    return step


def large_table(count: int) -> str:
    rows = []
    pieces = -(-count // MICRO)
    for name, parts in ((f"gradient caching, micro-batches of {MICRO}", pieces), ("the whole batch at once", 1)):
        took = in_fresh_process(__file__, ["--large", parts, count, "seconds"])
        megabytes = in_fresh_process(__file__, ["--large", parts, count, "megabytes"])
        rows.append([name, number(took), number(megabytes)])
    title = (
        f"**One SupCon step on {count:,} images ({2 * count:,} views), small-resnet**: peak beyond the views themselves"
    )
    return f"{title}\n\n" + markdown(["", "seconds", "MB"], rows)


def goals(found: dict[str, float]) -> str:
    rows = []
    for other, wanted in ((LIGHTLY, 2.5), (BARE, 0.85)):
        if other in found:
            ratio = found[OURS] / found[other]
            rows.append(
                [f"{OURS} against {other}", f"≥ {wanted} ×", f"{ratio:.2f} ×", "yes" if ratio >= wanted else "no"]
            )
    cost = 1 - found[OURS] / found[NO_MONITORS]
    rows.append(["monitors' share of the time", "≤ 3 %", f"{100 * cost:.1f} %", "yes" if cost <= 0.03 else "no"])
    return "**Goals, small-resnet**\n\n" + markdown(["", "goal", "measured", "reached"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short epochs, few rounds, no ResNet-18")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/training.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument(
        "--large", nargs=3, metavar=("PIECES", "COUNT", "WHAT"), help="print one step's figure and stop"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.large:
        pieces, count, what = arguments.large
        large_step(int(pieces), 64)()  # libraries and threads are there before the count begins
        step = large_step(int(pieces), int(count))
        start = time.perf_counter()
        megabytes = peak_megabytes(step)
        print(time.perf_counter() - start if what == "seconds" else megabytes)
        return
    keep_freed_memory()
    sections = Sections()
    rounds = arguments.rounds or (2 if arguments.quick else 3)
    sections.show(f"{setting()}, batches of {BATCH}, {rounds} rounds.")
    n = 2560 if arguments.quick else 10240
    found = speeds("small-resnet", n, rounds)
    sections.show(speed_table("small-resnet", n, found))
    if not arguments.quick:
        sections.show(speed_table("resnet18", 512, speeds("resnet18", 512, 1)))
    sections.show(large_table(1024 if arguments.quick else LARGE))
    sections.show(goals(found))
    if arguments.write:
        write_page("training", __doc__ or "", sections)


if __name__ == "__main__":
    main()
