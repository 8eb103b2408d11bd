"""What holds for every schedule, whichever file declares it."""

from __future__ import annotations

from typing import Any

import pytest

from kontrast import optim

OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {},
    "cosine": {},
    "warmup-cosine": {"warmup_epochs": 2},
    "multi-step": {"milestones": [5]},
    "power": {},
}


def make(name: str, **options: Any) -> Any:
    return optim.schedule(name, **{"total_steps": 100, "steps_per_epoch": 10, **OPTIONS[name], **options})


def test_every_file_is_a_name() -> None:
    assert sorted(OPTIONS) == optim.SCHEDULES.names()


@pytest.mark.parametrize("name", OPTIONS)
def test_pure_never_above_one_and_fixed_after_the_end(name: str) -> None:
    factor = make(name)
    forward = [factor(i) for i in range(100)]
    assert [factor(i) for i in reversed(range(100))] == forward[::-1], "a resumed run needs no state"
    assert max(forward) == 1.0
    assert min(forward) >= 0.0
    assert factor(100) == factor(10_000)
    assert all(type(x) is float for x in forward)


@pytest.mark.parametrize("name", OPTIONS)
def test_its_repr_makes_it_again(name: str) -> None:
    factor = make(name)
    assert eval(repr(factor), {type(factor).__name__: type(factor)}) == factor


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_steps_are_refused(name: str) -> None:
    for wrong in ({"total_steps": 0}, {"steps_per_epoch": 0}, {"total_steps": 10.5}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.*: must be a whole number of at least 1"):
            make(name, **wrong)
    with pytest.raises(ValueError, match="step=-1: must be a whole number of at least 0"):
        make(name)(-1)


def test_an_unknown_name_or_option_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no schedule 'cosin'; did you mean 'cosine'\? Known: constant, cosine"):
        optim.schedule("cosin", total_steps=1, steps_per_epoch=1)
    with pytest.raises(ValueError, match=r"schedule 'warmup-cosine' has no option 'warmup'; did you mean 'warmup_epo"):
        make("warmup-cosine", warmup=5)
    with pytest.raises(ValueError, match=r"schedule 'constant' has no option 'final'\. It has none"):
        make("constant", final=0.1)
