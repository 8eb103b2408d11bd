"""Signals, losses that are no numbers, patience."""

from __future__ import annotations

import math
import os
import signal

import pytest

from kontrast.train.stopping import SIGNALS, NonFiniteLoss, Patience, Stopped, check_finite, listening


@pytest.mark.parametrize("which", SIGNALS)
def test_a_signal_sets_a_flag_and_handlers_come_back(which: signal.Signals) -> None:
    outside = signal.signal(which, signal.SIG_DFL)  # under nohup SIGHUP is ignored
    try:
        with listening() as asked:
            assert asked.signum is None
            os.kill(os.getpid(), which)
            assert asked.signum == which
        assert signal.getsignal(which) is signal.SIG_DFL
    finally:
        signal.signal(which, outside)
    assert which.name in str(Stopped(which, 7))


def test_the_signals_are_those_of_terminals_and_of_slurm() -> None:
    assert {s.name for s in SIGNALS} == {"SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"}


@pytest.mark.parametrize("which", [signal.SIGHUP, signal.SIGUSR1])
def test_what_is_ignored_stays_ignored(which: signal.Signals) -> None:
    """SIGHUP under nohup, say."""
    before = signal.signal(which, signal.SIG_IGN)
    try:
        with listening() as asked:
            os.kill(os.getpid(), which)
            assert asked.signum is None
    finally:
        signal.signal(which, before)


def test_a_second_ctrl_c_does_not_wait() -> None:
    with listening():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_message_names_step_rate_temperature_and_cause(value: float) -> None:
    with pytest.raises(NonFiniteLoss) as caught:
        check_finite(value, step=12, lr=0.5, temperature=0.01, scalars={})
    for part in (
        "step 12",
        "learning rate 0.5",
        "temperature 0.01",
        "temperature is very low",
        "Earlier checkpoints are kept",
    ):
        assert part in str(caught.value)
    with pytest.raises(NonFiniteLoss, match="embeddings themselves are no longer numbers"):
        check_finite(value, step=12, lr=0.5, temperature=None, scalars={"positive_similarity": math.nan})
    with pytest.raises(
        NonFiniteLoss, match="Likely the loss or the data are wrong, not the rate: no weight has changed"
    ):
        check_finite(value, step=1, lr=0.0, temperature=0.1, scalars={"positive_similarity": math.nan})
    with pytest.raises(NonFiniteLoss, match="warm it up"):
        check_finite(value, step=12, lr=0.5, temperature=0.1, scalars={})


def test_finite_losses_pass() -> None:
    check_finite(1e30, step=1, lr=1.0, temperature=None, scalars={})


def test_patience_goes_on_from_its_state() -> None:
    patience = Patience(2)
    assert [patience.better(v, i) for i, v in enumerate([0.1, 0.3, 0.2])] == [True, True, False]
    again = Patience(**patience.state_dict())
    assert (again.best, again.best_step, again.waited, again.over) == (0.3, 1, 1, False)
    again.better(0.3, 9)
    assert again.over
    assert not Patience(None, waited=100).over
