"""Where a pretrained encoder starts: the file is checked first, what it gave is told, the end is compared with it."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from kontrast import models, recipes
from kontrast.evaluate import evaluate
from kontrast.pipeline import run_recipe
from kontrast.train import Training, load, make_job, resolve, subject_of
from kontrast.train.start import check_start, paired_difference
from tests.models.encoders.test_timm import needs_timm
from tests.train.exports.made import made
from tests.train.small import recipe, same_runs
from tests.train.test_embedding import SEVERAL, photos


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run to start from."""
    return run_recipe(recipe("supcon", tmp_path_factory.mktemp("start"))).path


def tuned(start: Path | str, out: Path, method: str = "supcon", **changes: Any) -> Any:
    return recipe(method, out, **{"encoder.pretrained": str(start), "train.epochs": 2, **changes})


# ---------------------------------------------------------------------------------------------- before the data


def damaged(folder: Path) -> Path:
    (folder / "half.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    return folder / "half.safetensors"


def text(folder: Path) -> Path:
    (folder / "weights.pt").write_text("not a pickle")
    return folder / "weights.pt"


def another(folder: Path) -> Path:
    save_file({"blocks.0.weight": torch.zeros(3)}, folder / "other.safetensors")
    return folder / "other.safetensors"


def mostly_another(folder: Path) -> Path:
    """One tensor of eight fits: the rest would be random."""
    save_file({"layers.1.bias": torch.zeros(32), "conv.weight": torch.zeros(3)}, folder / "part.safetensors")
    return folder / "part.safetensors"


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda folder: folder / "nowhere.pt", "no file .*nowhere.pt; expected a .safetensors file"),
        (damaged, "is not a whole safetensors file"),
        (text, "cannot be read as tensors alone"),
        (another, "nothing in .* fits"),
        (mostly_another, "has 1 of the 7 tensors of encoder mlp, so most of it would start from random weights"),
    ],
)
def test_a_bad_file_is_told_before_the_data_are_read_and_leaves_no_folder(
    write: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments: object, **options: object) -> None:
        raise AssertionError("the data were read")

    monkeypatch.setattr("kontrast.train.job.load", read)
    with pytest.raises(ValueError, match=rf"^encoder.pretrained=.*: .*{says}"):
        run_recipe(tuned(write(tmp_path), tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_a_tag_is_told_before_the_data_are_read(tmp_path: Path) -> None:
    tagged = recipe("supcon", tmp_path / "runs", data="/nowhere", encoder="timm/resnet18.a1_in1k")
    with pytest.raises(ValueError, match="the tag 'a1_in1k' names pretrained weights"):
        run_recipe(tagged)
    assert not (tmp_path / "runs").exists()


@needs_timm
def test_a_run_of_before_whose_name_has_a_tag_is_still_loaded(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "timm/resnet10t", (3, 32, 32))
    card = json.loads((run / "model.json").read_text())
    card["encoder"]["name"] = "timm/resnet10t.c3_in1k"
    (run / "model.json").write_text(json.dumps(card))
    assert load(run).feature_dim == 512


@needs_timm
@pytest.mark.parametrize("name", ["timm/resnet10t", "timm/vit_tiny_patch16_224", "resnet18", "small-resnet"])
def test_a_file_of_the_encoder_passes_whatever_the_images(name: str, tmp_path: Path) -> None:
    """The size and the channels of the images are not known yet."""
    torch.save(models.encoder(name, in_channels=1, image_size=32).state_dict(), tmp_path / "weights.pt")
    asked = recipe("supcon", tmp_path, encoder={"name": name, "pretrained": str(tmp_path / "weights.pt")})
    check_start(resolve(asked))


def test_the_home_folder_is_known(start: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(start.parent))
    check_start(resolve(tuned(os.path.join("~", start.name), start.parent)))


# ---------------------------------------------------------------------------------------------- hash and options


def test_a_random_start_has_the_hash_it_had_and_a_pretrained_one_says_frozen(start: Path, tmp_path: Path) -> None:
    assert resolve(recipes.find("supcon-fashion-mini")).hash == "7bf2a526"
    plain = resolve(recipe())
    assert plain.encoder.options["norm"] is None
    assert resolve(recipe(**{"encoder.norm": "train"})).hash == plain.hash, "a random start trains them anyway"
    frozen, moving = (resolve(tuned(start, tmp_path, **{"encoder.norm": norm})) for norm in (None, "train"))
    assert (frozen.encoder.options["norm"], moving.encoder.options["norm"]) == ("frozen", "train")
    assert frozen.hash != moving.hash
    assert resolve(frozen) == frozen
    with pytest.raises(ValueError, match=r"encoder.norm=frozen: .* starts from random weights"):
        resolve(recipe(**{"encoder.norm": "frozen"}))


# ---------------------------------------------------------------------------------------------- the run


def test_it_is_told_kept_and_compared(start: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = run_recipe(tuned(start, tmp_path, **{"run.progress": True}))
    said = " ".join(capfd.readouterr().err.split())
    assert f"encoder.pretrained: 8 tensors loaded, 0 missing, 0 unexpected, from {start}" in said
    assert "batch norm keeps its statistics (encoder.norm=frozen)" in said
    told = json.loads((run.path / "run.json").read_text())["pretrained"]
    assert (told["file"], told["tensors"], told["missing"], told["unexpected"]) == (str(start), 8, 0, 0)
    assert told["norm"] == "frozen"
    began = run.result["start"]
    of_start = evaluate(subject_of(start), "knn20", seed=0)
    assert began["result"]["value"] == of_start.value
    assert began["result"]["protocol"] == of_start.protocol
    change = began["difference"]
    assert change["value"] == pytest.approx(run.value("knn20") - of_start.value)
    assert change["lost"] + change["won"] <= change["test_rows"] == 100
    assert "same 100 test rows" in change["protocol"]
    assert "knn20 at the start" in said


def test_without_its_protocol_or_without_labels(start: Path, tmp_path: Path) -> None:
    other = run_recipe(tuned(start, tmp_path, **{"evaluate.protocols": ["retrieval"], "train.epochs": 1})).result
    assert other["start"]["difference"]["name"] == "knn20"
    assert [result["name"] for result in other["results"]] == ["retrieval"]
    unlabelled = {"data.labelled": False, "train.epochs": 1}
    assert "start" not in run_recipe(tuned(start, tmp_path, "simclr", **unlabelled)).result
    assert "start" not in run_recipe(recipe("supcon", tmp_path, **{"train.epochs": 1})).result


@pytest.mark.parametrize("method", ["supcon", "moco"])
def test_statistics_of_the_start_are_those_of_the_end(method: str, start: Path, tmp_path: Path) -> None:
    """Through monitors, checkpoints and a resume."""
    whole = run_recipe(tuned(start, tmp_path / "whole", method))
    stopped = tuned(start, tmp_path / "stopped", method, **{"run.checkpoint_every": 5})

    with pytest.MonkeyPatch.context() as patch:
        real = Training._step

        def step(self: Training, batch: Any) -> Any:
            if self.state.step == 7:
                raise InterruptedError
            return real(self, batch)

        patch.setattr(Training, "_step", step)
        with pytest.raises(InterruptedError):
            run_recipe(stopped)
    resumed = run_recipe(stopped)
    same_runs(resumed.path, whole.path)
    before, after = load_file(start / "encoder.safetensors"), load_file(resumed.path / "encoder.safetensors")
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    assert {"1.weight", "1.bias", "0.weight"} <= set(moved), "the weights are trained"
    assert not [name for name in moved if "running" in name or "tracked" in name]
    changed = run_recipe(tuned(start, tmp_path / "moving", method, **{"encoder.norm": "train"}))
    after = load_file(changed.path / "encoder.safetensors")
    assert not torch.equal(before["1.running_mean"], after["1.running_mean"])


# ---------------------------------------------------------------------------------------------- its preprocessing

THEIRS = models.Preprocessing(20, (0.3, 0.4, 0.5), (0.2, 0.25, 0.3), "bicubic", 0.8)


@pytest.fixture(scope="module")
def bicubic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A start whose card says 20 pixels, bicubic, 0.8 of the middle, and numbers that no data have."""
    run = made(tmp_path_factory.mktemp("bicubic") / "run", "small-resnet", (3, 20, 20), width=4)
    card = json.loads((run / "model.json").read_text())
    card["input"] |= {"std": list(THEIRS.std), "crop": 0.8, "interpolation": "bicubic"}
    (run / "model.json").write_text(json.dumps(card))
    return run


def from_card(start: Path, out: Path, data: Any, **changes: Any) -> Any:
    none = {"data.limit": None, "data.test_limit": None}
    short = {"augment": "weak", "train.epochs": None, "train.steps": 2, "train.batch_size": 8}
    encoder = {"name": "small-resnet", "width": 4, "pretrained": str(start)}
    return recipe("supcon", out, data=str(data), encoder=encoder, **none, **short, **changes)


RECIPES: list[tuple[dict[str, Any], models.Preprocessing]] = [
    ({}, THEIRS),
    ({"augment.size": 16}, dataclasses.replace(THEIRS, size=16)),
    ({"data.size": 24}, dataclasses.replace(THEIRS, size=24, crop=1.0)),
    ({"data.size": 24, "augment.size": 16}, dataclasses.replace(THEIRS, size=24, crop=1.0)),
    ({"data.mean": 0.5, "data.std": 0.4}, dataclasses.replace(THEIRS, mean=(0.5,) * 3, std=(0.4,) * 3)),
    ({"data.interpolation": "bilinear"}, dataclasses.replace(THEIRS, interpolation="bilinear")),
    ({"data.crop": 1.0}, dataclasses.replace(THEIRS, crop=1.0)),
]


@pytest.mark.parametrize("sizes", [[(12, 12)], SEVERAL], ids=["of one size", "of several sizes"])
@pytest.mark.parametrize(("changes", "expected"), RECIPES, ids=[str(changes) for changes, _ in RECIPES])
def test_a_run_reads_images_as_its_start_did_unless_the_recipe_says_otherwise(
    bicubic: Path, tmp_path: Path, sizes: Any, changes: dict[str, Any], expected: models.Preprocessing
) -> None:
    where = photos(tmp_path / "photos", sizes, sizes)
    job = make_job(resolve(from_card(bicubic, tmp_path, where, **changes)), torch.device("cpu"))
    assert job.preprocessing == expected
    views = job.augment(next(iter(job.loader().epoch(0)))).views
    assert views.shape[-1] == changes.get("augment.size", expected.size)
    crops = [step for view in job.views.operations for step in view.operations if hasattr(step, "interpolation")]
    assert {crop.interpolation for crop in crops or job.crop.crops} == {expected.interpolation}  # type: ignore[union-attr]
    normalise = job.views.operations[0].operations[-1]
    assert (normalise.mean, normalise.std) == (expected.mean, expected.std)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "sizes", [[(12, 12)], pytest.param(SEVERAL, marks=pytest.mark.slow)], ids=["of one size", "of several sizes"]
)
def test_a_tuned_run_says_embeds_and_evaluates_what_it_used(
    bicubic: Path, tmp_path: Path, sizes: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Printed, stored, in the card and its lines; and found again when the start is gone."""
    where = photos(tmp_path / "photos", sizes, sizes)
    shutil.copytree(bicubic, tmp_path / "start")
    run = run_recipe(from_card(tmp_path / "start", tmp_path, where, **{"run.progress": True}))
    assert f"images are read as {THEIRS}" in " ".join(capfd.readouterr().err.split())
    assert json.loads((run.path / "run.json").read_text())["pretrained"]["input"] == THEIRS.record()
    card = json.loads((run.path / "model.json").read_text())
    assert models.Preprocessing.of_card(card["input"]) == THEIRS
    assert "bicubic" in card["input"]["resize"]
    shutil.rmtree(tmp_path / "start")
    subject = subject_of(run)
    with np.load(run.path / "analysis.npz") as analysis:
        torch.testing.assert_close(subject.test[analysis["rows"]], torch.from_numpy(analysis["features"]))
    encoder = load(run)
    assert encoder.preprocessing == THEIRS
    files = [file for file in sorted(where.rglob("*.*")) if "test" in file.parts]
    found: dict[str, Any] = {}
    exec(card["prepare"], found)
    with torch.no_grad():
        by_card = encoder(torch.cat([found["prepared"](file) for file in files]))
    torch.testing.assert_close(encoder.embed(files), by_card, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(subject.test, by_card, rtol=1e-4, atol=1e-5)
    assert run.result["start"]["result"]["value"] is not None


def test_grey_images_get_the_average_of_the_channels(bicubic: Path, tmp_path: Path) -> None:
    grey = from_card(bicubic, tmp_path, "fashion-mini").override({"data.limit": 20})
    job = make_job(resolve(grey), torch.device("cpu"))
    assert job.input_shape == (1, 20, 20)
    assert job.data.mean == pytest.approx((0.4,))
    assert job.data.std == pytest.approx((0.25,))
    assert job.start is not None
    assert job.start.loaded is not None
    assert job.start.loaded.adapted == ["stem.0.weight"]


def test_views_that_do_not_crop_are_told_the_size(bicubic: Path, tmp_path: Path) -> None:
    where = photos(tmp_path / "photos", [(12, 12)], [(12, 12)])
    whole = from_card(bicubic, tmp_path, where).override({"augment": "none"})
    with pytest.raises(ValueError, match=r"checkpoint takes 20×20 pixels: the view 'none' does not .*data.size=20"):
        make_job(resolve(whole), torch.device("cpu"))
    make_job(resolve(whole.override({"data.size": 20})), torch.device("cpu"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data.mean": [0.1, 0.2]}, r"data.mean=\[0.1, 0.2\]: must be one number, or 3, one for each channel"),
        ({"data.std": 0}, "data.std.0=0: "),
        ({"data.crop": 1.5}, "data.crop=1.5"),
        ({"data.interpolation": "nearest"}, "data.interpolation='nearest': must be 'bilinear' or 'bicubic'"),
    ],
)
def test_what_the_recipe_may_not_say(bicubic: Path, tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    where = photos(tmp_path / "photos", [(12, 12)], [(12, 12)])
    with pytest.raises(ValueError, match=says):
        make_job(resolve(from_card(bicubic, tmp_path, where, **changes)), torch.device("cpu"))


def test_the_copy_of_the_start_is_not_trained(start: Path, tmp_path: Path) -> None:
    job = make_job(resolve(tuned(start, tmp_path)), torch.device("cpu"))
    assert job.start is not None
    assert job.start is not job.method.encoder
    own = {id(p) for p in job.method.parameters()}
    assert not own & {id(p) for p in job.start.parameters()}
    assert make_job(resolve(recipe()), torch.device("cpu")).start is None


def test_the_error_is_that_of_paired_rows() -> None:
    """A literal loop, and the binomial error it must not be."""
    draw = torch.Generator().manual_seed(0)
    before = torch.rand(200, generator=draw) < 0.9
    after = before ^ (torch.rand(200, generator=draw) < 0.05)
    d = [int(b) - int(a) for a, b in zip(before, after, strict=True)]
    mean = sum(d) / 200
    error = (sum((x - mean) ** 2 for x in d) / 200 / 200) ** 0.5
    found = paired_difference(before, after)
    assert found["value"] == pytest.approx(mean)
    assert found["error"] == pytest.approx(error)
    same = paired_difference(before, before)
    assert (same["value"], same["error"]) == (0.0, 0.0)
