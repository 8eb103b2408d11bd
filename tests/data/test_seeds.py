"""Draws depend on their names alone, and neighbouring names have unrelated draws."""

from __future__ import annotations

import itertools

import torch

from kontrast.data import Loader, Memory, Shuffled, Split, WithReplacement, noisy_labels
from kontrast.data.seeds import Stream, generator, seed_of


def test_every_number_counts_and_so_does_their_order() -> None:
    names = [(s, *rest) for s in range(4) for n in range(4) for rest in itertools.product(range(4), repeat=n)]
    assert len({seed_of(*name) for name in names}) == len(names)


def test_known_value() -> None:
    """SplitMix64 of the state 0 + φ: the first output of Java's SplittableRandom(0), by its published constants."""
    assert seed_of(0) == 0xE220A8397B1DCDAF >> 1


def test_half_of_the_bits_change_with_the_step() -> None:
    changed = [bin(seed_of(0, 0, k) ^ seed_of(0, 0, k + 1)).count("1") for k in range(2000)]
    mean = sum(changed) / len(changed)
    assert abs(mean - 31.5) < 4 * (63 / 4 / 2000) ** 0.5  # binomial(63, ½), four standard errors


def test_negative_and_large_numbers_are_taken() -> None:
    assert 0 <= seed_of(-1, 2**70, -5) < 2**63


def test_generators_of_one_name_agree() -> None:
    first, again, other = generator(3, 1), generator(3, 1), generator(3, 2)
    assert torch.equal(torch.rand(5, generator=first), torch.rand(5, generator=again))
    assert not torch.equal(torch.rand(5, generator=generator(3, 1)), torch.rand(5, generator=other))


def test_noise_does_not_follow_the_order_of_an_epoch() -> None:
    """Half of each batch of 100 is noisy, to five standard deviations of the hypergeometric draw (σ = 4.7)."""
    labels = torch.arange(1000) % 10
    noisy = noisy_labels(labels, 0.5, 10, seed=0) != labels
    sampler = Shuffled(1000, 100, seed=0)
    shares = [int(noisy[sampler.batch(0, k)].sum()) for k in range(10)]
    assert all(26 <= share <= 74 for share in shares), shares


def test_augmentation_does_not_follow_the_order_of_a_batch() -> None:
    split = Split(Memory(torch.zeros(45000, 1)))
    batch = Loader(split, WithReplacement(45000, 256, seed=0), seed=0).batch(0, 0)
    drawn = torch.randint(45000, (256,), generator=batch.generator())
    assert float((drawn % 9 == batch.indices % 9).float().mean()) < 0.25  # 1/9 by chance, 1 if both were one draw
    assert len({int(stream) for stream in Stream}) == len(Stream)
