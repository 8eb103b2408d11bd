"""Augmented views a second, on one thread, beside the neighbours' pipelines.

    python benchmarks/augment.py            everything (about two minutes)
    python benchmarks/augment.py --quick    a small form (well under a minute)

Every call makes one augmented and normalised float view of each image of a batch, from what the library takes: ours and
kornia's from a uint8 tensor, lightly's and torchvision's AutoAugment image by image, from PIL images in memory (no
decoding is counted) and for torchvision also from uint8 tensors. SimAugment is resized crop (0.2, 1), flip, colour
jitter (.4, .4, .4, .1) p .8, grey .2, Gaussian blur σ in 0.1…2 p .5, normalisation, the same for all three; kornia is
measured with our kernel of 13 pixels and with one of 3. AutoAugment comes after a crop with a border of 4 and a flip.
Images are noise over a gradient, 32 × 32 in batches of 512 and 224 × 224 in batches of 32.

Times are medians of rounds in which all calls take turns; a turn is three calls in a row, of which the fastest counts.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2 as T
from torchvision.transforms.v2.functional import to_pil_image

from kontrast import augment
from measure import Call, Sections, markdown, milliseconds, number, setting, write_page

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
OURS = "kontrast "
SIZES = {32: 512, 224: 32}  # pixels → images a batch


def images(n: int, size: int) -> Tensor:
    """uint8 [n, 3, size, size]: a gradient with noise, all colours about."""
    generator = torch.Generator().manual_seed(0)
    ramp = torch.linspace(0, 1, size)
    corner = torch.rand(n, 3, 2, 1, 1, generator=generator)
    smooth = corner[:, :, 0] * ramp + corner[:, :, 1] * ramp[:, None]
    noisy = 0.8 * smooth + 0.2 * torch.rand(n, 3, size, size, generator=generator)
    return (255 * noisy / noisy.amax((1, 2, 3), keepdim=True)).byte()


def each(transform: Callable[[Any], Any], items: list[Any]) -> Call:
    """A transform of single images, over a batch, as a data loader's worker runs it."""
    return lambda: torch.stack([transform(item) for item in items])


def kornia_pipeline(size: int, kernel: int) -> Call | None:
    """The same parameters in kornia's batched operations; None where kornia is not installed."""
    if importlib.util.find_spec("kornia") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        K = importlib.import_module("kornia.augmentation")
    pipeline = K.AugmentationSequential(
        K.RandomResizedCrop((size, size), scale=(0.2, 1.0)),
        K.RandomHorizontalFlip(p=0.5),
        K.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
        K.RandomGrayscale(p=0.2),
        K.RandomGaussianBlur((kernel, kernel), (0.1, 2.0), p=0.5),
        K.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
    )
    batch = images(SIZES[size], size)

    def call() -> Tensor:
        with torch.no_grad():
            return pipeline(batch.float() / 255)  # type: ignore[no-any-return]

    return call


def lightly_pipeline(size: int) -> Call | None:
    """One of the two equal views of lightly's SimCLRTransform; None where lightly is not installed."""
    if importlib.util.find_spec("lightly") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transforms = importlib.import_module("lightly.transforms")
    normalize = {"mean": list(MEAN), "std": list(STD)}
    both = transforms.SimCLRTransform(input_size=size, cj_strength=0.5, min_scale=0.2, normalize=normalize)
    return each(both.transforms[0], [to_pil_image(image) for image in images(SIZES[size], size)])


def simaugment(size: int) -> dict[str, Call]:
    batch, ours = images(SIZES[size], size), augment.preset("simaugment", size=size, mean=MEAN, std=STD, blur=True)
    calls: dict[str, Call | None] = {
        OURS + "SimAugment": lambda: ours(batch),
        "kornia": kornia_pipeline(size, 13),
        "kornia, kernel 3": kornia_pipeline(size, 3),
        "lightly SimCLRTransform": lightly_pipeline(size),
    }
    return {name: call for name, call in calls.items() if call is not None}


def autoaugment(size: int) -> dict[str, Call]:
    batch, ours = images(SIZES[size], size), augment.preset("autoaugment", size=size, mean=MEAN, std=STD)
    alone = augment.AutoAugment()
    policy = T.AutoAugment(T.AutoAugmentPolicy.CIFAR10)
    whole = [T.RandomCrop(size, padding=4), T.RandomHorizontalFlip(), policy]
    end = [T.ToImage(), T.ToDtype(torch.float32, scale=True), T.Normalize(list(MEAN), list(STD))]
    pictures = [to_pil_image(image) for image in batch]
    return {
        OURS + "AutoAugment, crop, flip": lambda: ours(batch),
        "torchvision, PIL": each(T.Compose([*whole, *end]), pictures),
        "torchvision, tensors": each(T.Compose([*whole, *end]), list(batch)),
        OURS + "AutoAugment alone": lambda: alone(batch),
        "torchvision alone, PIL": each(T.Compose([policy, *end[:2]]), pictures),
    }


def others(size: int) -> dict[str, Call]:
    """Our other presets."""
    batch = images(SIZES[size], size)
    names = ("crop-flip", "none", "simaugment", "simclr", "wang-liu", "weak")
    made = {name: augment.preset(name, size=size, mean=MEAN, std=STD) for name in names}
    return {OURS + name: lambda operation=operation: operation(batch) for name, operation in made.items()}  # type: ignore[misc]


TABLES: dict[str, Callable[[int], dict[str, Call]]] = {
    "SimAugment": simaugment,
    "AutoAugment": autoaugment,
    "Other presets": others,
}
# (table, ours, peer) → how many times faster, at 32 pixels
GOALS: list[tuple[str, str, str, float]] = [
    ("SimAugment", OURS + "SimAugment", "lightly SimCLRTransform", 8.0),
    ("SimAugment", OURS + "SimAugment", "kornia", 2.0),
    ("SimAugment", OURS + "SimAugment", "kornia, kernel 3", 2.0),
    ("AutoAugment", OURS + "AutoAugment, crop, flip", "torchvision, PIL", 5.0),
    ("AutoAugment", OURS + "AutoAugment, crop, flip", "torchvision, tensors", 5.0),
    ("AutoAugment", OURS + "AutoAugment alone", "torchvision alone, PIL", 5.0),
]


def table(title: str, times: dict[int, dict[str, float]]) -> str:
    def cells(name: str, size: int, at: dict[str, float]) -> list[str]:
        first = next(iter(at))
        return [number(1e3 * SIZES[size] / at[name]), number(at[name] / SIZES[size]), number(at[name] / at[first], 2)]

    names = list(next(iter(times.values())))
    rows = [[name, *(cell for size, at in times.items() for cell in cells(name, size, at))] for name in names]
    header = ["", *(h for s in times for h in (f"{s} × {s}: views/s", "ms a view", "times the first"))]
    return f"**{title}**\n\n" + markdown(header, rows)


def goals(results: dict[str, dict[int, dict[str, float]]]) -> str:
    rows = []
    for title, ours, peer, wanted in GOALS:
        times = results[title][32]
        if peer in times:
            seen = times[peer] / times[ours]
            rows.append(
                [f"{ours} against {peer}", f"≥ {wanted:g} ×", f"{seen:.1f} ×", "yes" if seen >= wanted else "no"]
            )
    return "**Goals, 32 × 32**\n\n" + markdown(["", "goal", "measured", "reached"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="32 × 32 only, few rounds")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/augment.md")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rounds = arguments.rounds or (3 if arguments.quick else 7)
    sections = Sections()
    sections.show(f"{setting()}, float32, batches of {' and '.join(f'{n} of {s} × {s}' for s, n in SIZES.items())}.")
    missing = [name for name in ("kornia", "lightly") if importlib.util.find_spec(name) is None]
    if missing:
        sections.show(f"Left out because not installed: {', '.join(missing)} (pip install 'kontrast[peers]').")
    results: dict[str, dict[int, dict[str, float]]] = {}
    for title, make in TABLES.items():
        results[title] = {s: milliseconds(make(s), rounds=rounds) for s in ([32] if arguments.quick else SIZES)}
        sections.show(table(title, results[title]))
    sections.show(goals(results))
    if arguments.write:
        write_page("augment", __doc__, sections)


if __name__ == "__main__":
    main()
