"""Images a second through the encoders, forward and backward, in the layouts of memory and compiled.

    python benchmarks/encoders.py            the whole table (about five minutes on two cores)
    python benchmarks/encoders.py --quick    a small form (under a minute)

Images are float32, RGB, of 32×32 pixels (28×28 and grey where said); a call is one batch forward and backward, the loss
a mean of squares. "channels_last" is what `models.encoder` gives, "default" is `channels_last=False`; "compiled" is
`torch.compile` of the channels_last one, where that works here, its compilation not counted. All forms of one encoder
take turns: times are medians of rounds, a turn is three calls in a row of which the fastest counts (a call of more than
two seconds is made once a turn only). Ratios are to the default layout of the same encoder.

"Shapes" are candidates for the small encoder, channels_last, taking turns: width, depth, stem, feature size, views of
24×24 pixels, and the second convolution of every block in groups of 8 or 16 channels. What they learn in equal time is
in docs/experiments/trials.md; groups are left out there, since with fewer parameters they are not quicker.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from kontrast import models
from measure import Call, Sections, markdown, milliseconds, number, setting, write_page

BATCH = 128
DEFAULT, LAST, COMPILED = "default", "channels_last", "compiled"

# What is said of an encoder: its name for `models.encoder`, its options, and the images' channels and side.
Case = tuple[str, dict[str, Any], int, int]
CASES: dict[str, Case] = {
    "small-resnet": ("small-resnet", {}, 3, 32),
    "small-resnet, 28×28 grey": ("small-resnet", {}, 1, 28),
    "small-resnet, width 32": ("small-resnet", {"width": 32}, 3, 32),
    "small-resnet, width 48": ("small-resnet", {"width": 48}, 3, 32),
    "resnet18": ("resnet18", {}, 3, 32),
}
QUICK = ("small-resnet", "resnet18")

# Options of small-resnet, the side of its images, and how many channels a group has (None: no groups).
SHAPES: dict[str, tuple[dict[str, Any], int, int | None]] = {
    "width 16": ({}, 32, None),
    "width 16, 256 features": ({"features": 256}, 32, None),
    "width 16, 256 features, 24×24": ({"features": 256}, 24, None),
    "width 16, depth 2": ({"depth": 2}, 32, None),
    "width 16, half stem": ({"stem": "half"}, 32, None),
    "width 24": ({"width": 24}, 32, None),
    "width 24, half stem": ({"width": 24, "stem": "half"}, 32, None),
    "width 32": ({"width": 32}, 32, None),
    "width 32, half stem": ({"width": 32, "stem": "half"}, 32, None),
    "width 32, groups of 8": ({"width": 32}, 32, 8),
    "width 32, groups of 16": ({"width": 32}, 32, 16),
    "width 48": ({"width": 48}, 32, None),
}


def step(encoder: Callable[[Tensor], Tensor], images: Tensor, parameters: list[nn.Parameter]) -> Call:
    """Forward and backward; gradients start anew each time."""

    def call() -> None:
        for parameter in parameters:
            parameter.grad = None
        encoder(images).square().mean().backward()  # type: ignore[no-untyped-call]

    return call


def shape(name: str) -> nn.Module:
    """The encoder of a line of `SHAPES`."""
    options, side, group = SHAPES[name]
    made: nn.Module = models.encoder("small-resnet", image_size=side, seed=0, **options)
    if group is not None:
        for block in made.blocks:  # type: ignore[union-attr]
            width = block.conv2.out_channels
            block.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False, groups=width // group)
        made.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return made


def shapes_table(batch: int, rounds: int) -> str:
    """Images a second of every shape, and the ratio to the first."""
    made = {name: shape(name) for name in SHAPES}
    calls = {
        name: step(net, torch.randn(batch, 3, SHAPES[name][1], SHAPES[name][1]), list(net.parameters()))
        for name, net in made.items()
    }
    times = milliseconds(calls, rounds=rounds)
    first = times[next(iter(times))]
    rows = [
        [
            name,
            f"{sum(p.numel() for p in net.parameters()):,}",
            f"{number(1e3 * batch / times[name])} ({number(first / times[name])})",
        ]
        for name, net in made.items()
    ]
    return "**Shapes of small-resnet**: images/s (times the first)\n\n" + markdown(["", "parameters", "images/s"], rows)


def forms(case: str, batch: int, *, compiled: bool) -> tuple[dict[str, Call], str | None]:
    """The calls of one encoder by their form, and why it could not be compiled, if so."""
    name, options, channels, side = CASES[case]
    images = torch.randn(batch, channels, side, side, generator=torch.Generator().manual_seed(0))

    def made(last: bool) -> nn.Module:
        return models.encoder(name, in_channels=channels, image_size=side, seed=0, channels_last=last, **options)

    plain, last = made(False), made(True)
    calls = {form: step(e, images, list(e.parameters())) for form, e in ((DEFAULT, plain), (LAST, last))}
    if not compiled:
        return calls, None
    learned = made(True)
    call = step(torch.compile(learned), images, list(learned.parameters()))
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            call()  # compiles
    except Exception as error:  # whatever a compiler that is not there raises
        return calls, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:160]}"
    return calls | {COMPILED: call}, None


def table(title: str, times: dict[str, dict[str, float]], batch: int) -> str:
    """Images a second, and the ratio to the default layout."""
    columns = [form for form in (DEFAULT, LAST, COMPILED) if any(form in t for t in times.values())]
    rows = []
    for case, t in times.items():
        name, options, channels, side = CASES[case]
        made = models.encoder(name, in_channels=channels, image_size=side, **options)
        count = sum(p.numel() for p in made.parameters())
        cells = [
            f"{number(1e3 * batch / t[form])} ({number(t[DEFAULT] / t[form])})" if form in t else "–"
            for form in columns
        ]
        rows.append([case, f"{count:,}", *cells])
    return f"**{title}**: images/s (times “default”)\n\n" + markdown(["", "parameters", *columns], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two encoders, few rounds, nothing compiled")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/encoders.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--batch", type=int, default=BATCH)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    sections = Sections()
    rounds = arguments.rounds or (2 if arguments.quick else 5)
    sections.show(f"{setting()}, batches of {arguments.batch}, {rounds} rounds.")
    times: dict[str, dict[str, float]] = {}
    refused: dict[str, str] = {}
    for case in QUICK if arguments.quick else CASES:
        calls, why = forms(case, arguments.batch, compiled=not arguments.quick)
        times[case] = milliseconds(calls, rounds=rounds)
        if why:
            refused[case] = why
    sections.show(table("Forward and backward", times, arguments.batch))
    if refused:
        reasons = "; ".join(f"{case}: {why}" for case, why in refused.items())
        sections.show(f"torch.compile did not work here. {reasons}")
    elif not arguments.quick:
        faster = [case for case, t in times.items() if t[COMPILED] < t[LAST]]
        sections.show(
            f"torch.compile worked; it is faster than channels_last alone for: {', '.join(faster) or 'none'}."
        )
    if not arguments.quick:
        sections.show(shapes_table(arguments.batch, rounds))
    if arguments.write:
        write_page("encoders", __doc__ or "", sections)


if __name__ == "__main__":
    main()
