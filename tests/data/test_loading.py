"""Tests of kontrast.data.loading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats

from kontrast.data.dataset import DataSet, Memory, Options, channel_statistics
from kontrast.data.loading import SETS, Recoloured, conform, load, names, noisy_labels
from tests.data.pictures import classes, noise


def test_names_with_dashes_or_underscores() -> None:
    assert "tiny-imagenet" in names()
    assert SETS["tiny-imagenet"] is SETS["tiny_imagenet"]
    assert load("fashion_mini").name == load("fashion-mini").name == "fashion-mini"


def test_folders_and_files(tmp_path: Path) -> None:
    assert len(load(classes(tmp_path / "a")).train) == 6
    assert len(load(str(tmp_path / "a"), size=4).train) == 6
    np.savez(tmp_path / "b.npz", x_train=np.eye(3), y_train=[0, 1, 2])
    assert load(tmp_path / "b.npz").kind == "vector"
    (tmp_path / "c.txt").write_text("x")
    with pytest.raises(ValueError, match="a file of another kind"):
        load(tmp_path / "c.txt")


X = np.stack([noise(6, 5, seed=i) for i in range(4)])


@pytest.mark.parametrize(
    ("source", "test", "labelled"),
    [
        (X, None, False),
        (torch.from_numpy(X), X, False),
        ((X, [0, 1, 0, 1]), (X, [0, 0, 0, 1]), True),
        ({"x_train": X, "y_train": [0, 1, 0, 1]}, None, True),
        ([(x, i % 2) for i, x in enumerate(X)], [(X[0], 1)], True),
    ],
)
def test_objects(source: Any, test: Any, labelled: bool) -> None:
    data = load(source, test=test)
    assert data.labelled == labelled
    assert data.train.inputs.shape == (3, 6, 5)
    assert (data.test is None) == (test is None)
    assert load(data) is data


@pytest.mark.parametrize(
    ("source", "test"),
    [
        ((np.eye(4).tolist(), [0, 1, 0, 1]), (np.eye(4).tolist(), [0, 0, 0, 1])),
        ((X.tolist(), np.array([0, 1, 0, 1])), (X, [0, 0, 0, 1])),
        ((list(X), (0, 1, 0, 1)), (list(X), [0, 0, 0, 1])),
        (([Image.fromarray(x) for x in X], torch.tensor([0, 1, 0, 1])), (list(X), [0, 0, 0, 1])),
    ],
)
def test_rows_and_labels_may_be_lists(source: Any, test: Any) -> None:
    data = load(source, test=test)
    assert data.train.require_labels("a test").tolist() == [0, 1, 0, 1]
    assert data.test is not None
    assert data.test.require_labels("a test").tolist() == [0, 0, 0, 1]
    assert load((source[0], None)).train.labels is None


def test_two_items_are_no_rows_and_labels() -> None:
    for items in (((X[0], 0), (X[1], 1)), ((X[0],), (X[1],)), ([1.0, 2.0], [3.0, 4.0])):
        assert len(load(items).train) == 2


LUMA = np.stack([np.asarray(Image.fromarray(x).convert("L")) for x in X])


@pytest.mark.parametrize(
    "form", ["array", "pair", "mapping", "npz", "list", "folder", "data", "lazy data", "mixed data"]
)
@pytest.mark.parametrize("channels", [1, 3])
def test_channels_and_labels_of_every_source(tmp_path: Path, form: str, channels: int) -> None:
    for i, x in enumerate(X):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(x).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    np.savez(tmp_path / "x.npz", x_train=X, y_train=[0, 1, 0, 1], x_unlabelled=X)
    source = {
        "array": X,
        "pair": (X, [0, 1, 0, 1]),
        "mapping": {"x_train": X, "y_train": [0, 1, 0, 1]},
        "npz": tmp_path / "x.npz",
        "list": [(x, i % 2) for i, x in enumerate(X)],
        "folder": tmp_path,
        "data": load((X, [0, 1, 0, 1])),
        "lazy data": load(tmp_path, memory=0),
        "mixed data": load(tmp_path, memory=0, check="names"),
    }[form]
    data = load(source, channels=channels, labelled=False)
    read = data.train.inputs.read(torch.arange(4), lambda image, seed: image, [0] * 4)
    expected = torch.from_numpy(X.transpose(0, 3, 1, 2).copy()) if channels == 3 else torch.from_numpy(LUMA)[:, None]
    order = [0, 2, 1, 3] if form in ("folder", "lazy data", "mixed data") else [0, 1, 2, 3]
    assert torch.equal(read, expected[order])
    assert data.train.labels is data.class_names is None
    if form != "mixed data":  # of which the middles are taken
        np.testing.assert_allclose(data.mean, expected.double().mean((0, 2, 3)) / 255, rtol=1e-6)
    assert len(data.mean) == len(data.std) == channels
    if data.unlabelled is not None:
        assert data.unlabelled.inputs.shape == (channels, 6, 5)
    if form != "array":
        assert load(source, labelled=True).labelled


def test_channels_and_labels_of_a_named_set() -> None:
    grey = load("fashion-mini", limit=50)
    data = load("fashion-mini", limit=50, channels=3)
    assert data.test is not None
    assert data.train.inputs.shape == data.test.inputs.shape == (3, 28, 28)
    assert (data.mean, data.std) == ((0.5,) * 3, (0.5,) * 3)
    assert torch.equal(data.train.inputs.read(torch.arange(50))[:, 2:], grey.train.inputs.read(torch.arange(50)))
    back = load(data, channels=1)
    assert back.mean == channel_statistics(grey.train.inputs)[0], "of the data, not a channel of the set's"
    bare = load("fashion-mini", labelled=False)
    assert bare.test is not None
    assert bare.train.labels is bare.test.labels is bare.class_names is None
    assert load("fashion-mini", labelled=True).labelled


def test_a_loaded_set_has_its_size() -> None:
    data = load(X, size=4)
    assert load(data, size=4) is data
    with pytest.raises(ValueError, match="size=5: must be None for 'arrays', which is loaded already"):
        load(data, size=5)


def test_limits_are_even_and_seeded() -> None:
    data = load("fashion-mini", limit=100, test_limit=50, seed=1)
    assert data.train.labels is not None
    assert data.train.labels.bincount().tolist() == [10] * 10
    assert data.test is not None
    assert len(data.test) == 50
    first, second = (load("fashion-mini", limit=100, seed=s).train.inputs.read(torch.arange(100)) for s in (1, 2))
    assert torch.equal(first, data.train.inputs.read(torch.arange(100)))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("cifar", {}, "'cifar' is neither a set nor a path that exists; did you mean 'cifar10'"),
        ("/no/such/place", {}, "neither a set nor a path"),
        ("digits", {"test": X}, "which has its own test split"),
        ({"x_train": X}, {"test": X}, "Put x_test and y_test into the mapping"),
        ("digits", {"sice": 3}, "no option 'sice'; did you mean 'size'.*limit, .*seed, .*channels, .*max_bad"),
        ("digits", {"test_limits": 3}, "did you mean 'test_limit'"),
        ("digits", {"root": "~nobody-here/x"}, "root is '~nobody-here/x', but there is no such user"),
        ((X, [0] * 4), {"test": (X, X, X)}, "test is a tuple of 3"),
        ((list(X), [0] * 3), {}, "y_train: must have 4 labels, one for each row; got 3"),
        (np.eye(3), {"channels": 3}, r"holds vectors \(3,\): size and channels must be None"),
        (np.eye(3), {"size": 3}, "size and channels must be None"),
        (X, {"labelled": True}, "labelled=True: must have labels, and the training rows of 'arrays' have none"),
        ([*X], {"labelled": True}, "labelled=True"),
        ((X, [0] * 4), {"test": X, "labelled": True}, "the test rows of 'arrays' have none"),
        ("digits", {"size": -1}, "size=-1: must be"),
        (7, {}, "a int cannot be indexed"),
    ],
)
def test_errors_speak(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(source, **options)


def test_every_set_says_what_it_is() -> None:
    for name in names():
        found = SETS[name]
        assert found.name == name
        assert len(found.mean) == len(found.std) > 0
        assert found.note
    assert isinstance(load("digits"), DataSet)


@pytest.mark.parametrize(("kind", "wrong"), [("changed", 0.5), ("redrawn", 0.45)])
def test_noise(kind: str, wrong: float) -> None:
    """Half of 10,000 labels; redrawn ones stay one time in ten, to four standard deviations (0.003)."""
    clean, noisy = load("fashion-mini"), load("fashion-mini", noise=0.5, noise_kind=kind)
    share = float((noisy.train.labels != clean.train.labels).float().mean())
    assert abs(share - wrong) < (1e-6 if kind == "changed" else 0.012)
    assert torch.equal(noisy.test.labels, clean.test.labels)
    with pytest.raises(ValueError, match="label noise needs labels"):
        load("fashion-mini", labelled=False, noise=0.5)


def test_what_conforms_stays_itself() -> None:
    data = load("digits")
    assert conform(data, Options()) is data
    assert conform(data, Options(channels=1, labelled=True)) is data


def test_grey_made_rgb_repeats_pixels_and_statistics() -> None:
    grey, colour = load("digits"), load("digits", channels=3)
    rows = torch.tensor([3, 5])
    assert torch.equal(colour.train.inputs.read(rows), grey.train.inputs.read(rows).expand(-1, 3, -1, -1))
    assert colour.mean == grey.mean * 3


def test_rgb_made_grey_has_statistics_of_its_own() -> None:
    images = torch.randint(0, 256, (20, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    data = load((images, torch.arange(20) % 2), channels=1)
    assert data.train.inputs.shape == (1, 8, 8)
    assert (data.mean, data.std) == channel_statistics(data.train.inputs)


def test_inputs_outside_memory_are_recoloured_when_read() -> None:
    images = Memory(torch.arange(48, dtype=torch.uint8).view(1, 3, 4, 4))
    seen = Recoloured(images, 1)
    assert (len(seen), seen.shape) == (1, (1, 4, 4))
    assert seen.read(torch.tensor([0])).shape == (1, 1, 4, 4)
    assert repr(seen).startswith("Recoloured(Memory(")


def test_labels_dropped_or_insisted_on() -> None:
    bare = conform(load("digits"), Options(labelled=False))
    assert bare.train.labels is None
    assert bare.test is not None
    assert bare.test.labels is None
    with pytest.raises(ValueError, match="labelled=True: must have labels, and the training rows"):
        conform(bare, Options(labelled=True))


K, N = 10, 20000
LABELS = torch.arange(N) % K


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.25, 1.0])
def test_changed_labels_are_exactly_the_share_and_all_wrong(noise: float) -> None:
    assert int((noisy_labels(LABELS, noise, K) != LABELS).sum()) == round(noise * N)


def test_changed_labels_are_uniform_over_the_others() -> None:
    shift = (noisy_labels(LABELS, 1.0, K) - LABELS) % K
    counts = torch.bincount(shift, minlength=K)[1:]
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_redrawn_labels_stay_one_time_in_ten() -> None:
    noisy = noisy_labels(LABELS, 0.5, K, kind="redrawn")
    changed = int((noisy != LABELS).sum())
    assert stats.binomtest(changed, N // 2, 0.9).pvalue > 1e-3
    assert stats.chisquare(torch.bincount(noisy_labels(LABELS, 1.0, K, kind="redrawn")).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["changed", "redrawn"])
def test_a_larger_share_contains_a_smaller_one(kind: str) -> None:
    less, more = (noisy_labels(LABELS, share, K, kind=kind) for share in (0.2, 0.6))
    changed = less != LABELS
    assert torch.equal(less[changed], more[changed])


def test_seed_and_input() -> None:
    labels = LABELS.clone()
    first, again, other = (noisy_labels(labels, 0.3, K, seed=s) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(labels, LABELS)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"noise": 1.5}, "share of the labels"),
        ({"noise": -0.1}, "share of the labels"),
        ({"noise": float("nan")}, "share of the labels"),
        ({"noise": 0.5, "kind": "flipped"}, "must be one of 'changed', 'redrawn'"),
        ({"noise": 0.5, "num_classes": 1}, "at least 2"),
        ({"noise": 0.5, "num_classes": 5}, r"labels from 0 to 9: must be in 0 … 4 when num_classes=5"),
    ],
)
def test_errors(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        noisy_labels(LABELS, **{"num_classes": K, **options})  # type: ignore[arg-type]
