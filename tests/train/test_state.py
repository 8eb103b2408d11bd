"""What a checkpoint holds."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
import torch

from kontrast.train.precision import Precision
from kontrast.train.state import State, log_of, random_states, set_random_states, unfit
from kontrast.train.stopping import Patience
from tests.methods.samples import batch, made


def state(seed: int = 0) -> State:
    method = made("moco", seed=seed)
    optimiser = torch.optim.SGD(method.parameters(), lr=0.1, momentum=0.9)
    return State(method, optimiser, Precision("float32", torch.device("cpu")), Patience(3))


def test_there_and_back() -> None:
    one, other = state(), state(seed=4)
    one.method.step(batch("moco"))["loss"].backward()
    one.optimiser.step()
    one.method.after_step()
    one.step, one.sums = 1, {"loss": 2.0, "steps": 1}
    one.patience.better(0.4, 1)
    assert other.restore(one.capture("hash", "data", 77)) == 77
    assert (other.step, other.sums, other.patience.best) == (1, {"loss": 2.0, "steps": 1}, 0.4)
    for name, tensor in one.method.state_dict().items():
        assert torch.equal(other.method.state_dict()[name], tensor), name
    saved = [s.optimiser.state_dict()["state"] for s in (one, other)]
    assert all(torch.equal(saved[0][i]["momentum_buffer"], saved[1][i]["momentum_buffer"]) for i in saved[0])
    assert int(other.method.queue.pointer) == 12


@pytest.mark.parametrize(
    ("hash_", "data", "says"),
    [
        ("hash", "data", ""),
        ("other", "data", "another recipe, 'hash' and"),
        ("hash", "other", "other data, 'data' and"),
    ],
)
def test_of_another_run(hash_: str, data: str, says: str) -> None:
    saved = state().capture("hash", "data", 0)
    assert unfit(saved, hash_, data).removeprefix("it is of ").startswith(says)
    assert bool(unfit(saved, hash_, data)) == bool(says)


def test_a_key_that_it_lacks() -> None:
    saved = state().capture("hash", "data", 0)
    for key in set(saved) - {"log", "fitted_at"}:  # those may lack in older ones
        assert unfit({k: v for k, v in saved.items() if k != key}, "hash", "data") == f"it lacks {key}"


def test_random_states() -> None:
    states = random_states()
    drawn = torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    set_random_states(states)
    again = torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    assert torch.equal(drawn[0], again[0])
    assert (drawn[1] == again[1]).all()
    assert drawn[2] == again[2]


def test_the_log_comes_back_from_a_checkpoint() -> None:
    lines = b'{"step": 1}\n' * 1000
    packed = torch.frombuffer(bytearray(zlib.compress(lines, 1)), dtype=torch.uint8)
    assert log_of({"log": packed}) == lines
    assert log_of({"log": None}) is None
    assert log_of({}) is None, "of before it was kept"
