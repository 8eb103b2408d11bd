r"""Random numbers that depend only on what they are for: seed, epoch, step, and whatever else names the draw.

    (1)  state ← seed,   then for each further number v:   state ← mix(state + (v + 1)·φ),   φ = 0x9E3779B97F4A7C15

mix is SplitMix64's finaliser (Steele, Lea & Flood), which changes about half of the bits for every bit changed, so that
neighbouring epochs and steps have unrelated draws. A run can go on at any step, on any number of workers or ranks.

The first number after the seed is a `Stream`, what the draw is for, so that two kinds of draws of one seed never share
their numbers: with the order of an epoch and the noisy labels drawn alike, the noise would all come first.
"""

from __future__ import annotations

from enum import IntEnum

import torch

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Stream(IntEnum):
    """What a draw is for. Draws of your own take numbers from 100 on."""

    ORDER = 1  # which samples are in a batch
    CROP = 2  # crops at decoding
    AUGMENT = 3  # the rest of the augmentation
    NOISE = 4  # wrong labels
    NETWORK = 5  # dropout, and whatever else a network draws
    KEYS = 6  # shuffled keys
    HELD_OUT = 7  # which samples are held out of training


def seed_of(seed: int, *numbers: int) -> int:
    """(1): one number of 63 bits for a draw that is named by several.

    >>> seed_of(0, Stream.ORDER, 2) == seed_of(0, Stream.ORDER, 2), seed_of(0, Stream.ORDER, 2) == seed_of(0, 2, 1)
    (True, False)
    """
    state = _mix((seed + _GOLDEN) & _MASK)
    for number in numbers:
        state = _mix((state + (number + 1) * _GOLDEN) & _MASK)
    return state >> 1


def generator(seed: int, *numbers: int) -> torch.Generator:
    """A generator on the CPU for that draw.

    >>> one, same, other = (torch.rand(2, generator=generator(0, s, 7)) for s in (3, Stream.AUGMENT, Stream.CROP))
    >>> one.equal(same), one.equal(other)
    (True, False)
    """
    return torch.Generator().manual_seed(seed_of(seed, *numbers))


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)
