"""An export with a classifier: the linear probe of the run, in every format, with the predictions that torch gives."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import kontrast
from kontrast import data
from kontrast.evaluate import Classifier, Result, Subject
from kontrast.pipeline import run_recipe
from kontrast.runs import Run
from kontrast.train import exports, subject_of
from kontrast.train.evaluation import SEEN, labelled_subject
from kontrast.train.exports import Head, Source, export_run
from tests.train.exports.made import made
from tests.train.small import recipe

CLASSES = [str(digit) for digit in range(10)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A perceptron of digits, evaluated by the protocol that the classifier is fitted by."""
    return run_recipe(recipe("supcon", tmp_path_factory.mktemp("runs"), **{"evaluate.protocols": ["probe"]}))


def with_head(folder: Path, shape: tuple[int, ...], **options: Any) -> Source:
    """A ResNet with a classifier of three classes, drawn: what the weights are matters to nobody here."""
    source = Source.read(Run(made(folder, "resnet18", shape, **options)))
    draws = torch.Generator().manual_seed(0)
    labels = torch.arange(6) % 3
    result = Result.of_scores(
        torch.eye(3)[labels],
        labels,
        name="probe",
        protocol="by hand",
        train_rows=9,
        seed=0,
        class_names=["a", "b", "c"],
    )
    weight, bias = torch.randn(3, 512, generator=draws), torch.randn(3, generator=draws)
    rows = torch.rand(6, *shape, generator=draws)
    return dataclasses.replace(source, head=Head(Classifier(weight=weight, bias=bias, result=result), rows))


def answers(logits: torch.Tensor, subject: Subject) -> float:
    """The share of test rows that are classified right."""
    return float((logits.argmax(1) == subject.test_labels).double().mean())


def inputs(subject: Subject) -> torch.Tensor:
    """The test rows as the encoder takes them."""
    assert subject.data is not None
    assert subject.data.test is not None
    x = subject.data.test.inputs.read(torch.arange(len(subject.test_labels))).float() / 255
    mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (subject.data.mean, subject.data.std))
    return (x - mean) / std


def test_onnx_has_it_all_in_one_file(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    folder = run.export("onnx", with_classifier=True)
    assert folder == run.path / "exports" / "onnx-classifier"
    assert sorted(file.name for file in folder.iterdir()) == [
        *("README.md", "classifier.onnx", "labels.txt", "model.json"),
    ]
    session = onnxruntime.InferenceSession(str(folder / "classifier.onnx"), providers=["CPUExecutionProvider"])
    assert [output.name for output in session.get_outputs()] == ["features", "logits", "probabilities"]
    about = json.loads(session.get_modelmeta().custom_metadata_map["kontrast"])
    assert about["classes"] == CLASSES == (folder / "labels.txt").read_text().splitlines()
    subject = subject_of(run)
    assert subject.data is not None
    assert subject.data.test is not None
    x = (subject.data.test.inputs.read(torch.arange(100)).float() / 255).numpy()
    features, logits, probabilities = map(torch.from_numpy, session.run(None, {"images": x}))
    torch.testing.assert_close(features, subject.test, rtol=1e-4, atol=1e-4)  # rounding of float32 in another order
    torch.testing.assert_close(probabilities, logits.softmax(1))
    assert answers(logits, subject) == run.value("probe"), "the accuracy that the run has, by the same protocol"
    card = json.loads((folder / "model.json").read_text())
    result = run.result["results"][0]
    assert card["classifier"]["classes"] == CLASSES
    assert card["classifier"]["result"] == {key: result[key] for key in card["classifier"]["result"]}
    text = (folder / "README.md").read_text()
    assert "pipeline_tag: image-classification" in text
    assert f"{100 * result['value']:.2f} % ± {100 * result['error']:.2f} of 100 test rows are classified right" in text
    assert "fitted on 200 rows of digits, seed 0" in text
    with contextlib.chdir(folder):
        exec(card["load"], {})
    assert capsys.readouterr().out.strip() in CLASSES


def test_safetensors(run: Run) -> None:
    folder = run.export("safetensors", with_classifier=True)
    head = load_file(folder / "classifier.safetensors")
    assert {name: list(tensor.shape) for name, tensor in head.items()} == {"weight": [10, 16], "bias": [10]}
    with safe_open(folder / "classifier.safetensors", "pt") as file:
        assert json.loads(file.metadata()["classes"]) == CLASSES
    subject = subject_of(run)
    assert answers(subject.test @ head["weight"].T + head["bias"], subject) == run.value("probe")
    assert kontrast.load(folder).feature_dim == 16
    found: dict[str, Any] = {}
    with contextlib.chdir(folder), torch.random.fork_rng(devices=[]):
        exec(json.loads((folder / "model.json").read_text())["load"], found)
    assert answers(found["classify"](inputs(subject).flatten(1)), subject) == run.value("probe")


def expected(source: Source) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and the logits of the encoder and its head in double."""
    assert source.head is not None
    x = torch.randn(2, *source.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        h = source.encoder.double()(x)
    return x, h @ source.head.classifier.weight.double().T + source.head.classifier.bias.double()


@pytest.mark.parametrize(("shape", "stem"), [((3, 32, 32), "large"), ((1, 16, 16), "small")])
def test_torchvision_has_it_as_fc(tmp_path: Path, shape: tuple[int, ...], stem: str) -> None:
    source = with_head(tmp_path / "run", shape, stem=stem)
    (tmp_path / "out").mkdir()
    before = torch.random.get_rng_state()
    lines = exports.find("torchvision")().write(source, tmp_path / "out")
    assert torch.equal(before, torch.random.get_rng_state())
    found: dict[str, Any] = {}
    with contextlib.chdir(tmp_path / "out"), torch.random.fork_rng(devices=[]):
        exec(lines, found)
    x, logits = expected(source)
    with torch.no_grad():
        torch.testing.assert_close(found["model"].double()(x), logits, rtol=1e-9, atol=1e-9)


def test_timm_has_it_as_its_own(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    source = with_head(tmp_path / "run", (3, 32, 32), stem="large")
    (tmp_path / "out").mkdir()
    target = exports.find("timm")()
    assert target.classifier_refusal(source) is None
    before = torch.random.get_rng_state()
    target.write(source, tmp_path / "out")
    assert torch.equal(before, torch.random.get_rng_state())
    model = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True).eval().double()
    assert (model.num_classes, model.pretrained_cfg["label_names"]) == (3, ["a", "b", "c"])
    bare = timm.create_model(f"local-dir:{tmp_path / 'out'}", pretrained=True, num_classes=0).eval().double()
    x, logits = expected(source)
    with torch.no_grad():
        torch.testing.assert_close(model(x), logits, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(bare(x), source.encoder(x), rtol=1e-9, atol=1e-9)


def test_a_file_that_disagrees_is_not_put_in_place(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On real rows: the features agree, the classifier of the file is another one."""
    real = exports._head.Head.tensors
    wrong = lambda head, prefix="": {k: v + 0.01 for k, v in real(head, prefix).items()}  # noqa: E731
    monkeypatch.setattr(exports._head.Head, "tensors", wrong)
    with pytest.raises(ValueError, match=r"safetensors gives logits that differ from the run's by .* of the largest"):
        run.export("safetensors", tmp_path / "out", with_classifier=True)
    assert not (tmp_path / "out").exists()


def test_without_labels_or_without_a_place(run: Run, tmp_path: Path) -> None:
    bare = run_recipe(recipe("simclr", tmp_path, **{"data.labelled": False, "train.steps": 1, "train.epochs": None}))
    with pytest.raises(
        ValueError, match=r"learned from 200 rows without labels, and a classifier needs them\. Give lab"
    ):
        bare.export("safetensors", with_classifier=True)
    folder = bare.export("safetensors", with_classifier=True, data=data.load("digits", limit=150, test_limit=50))
    about = json.loads((folder / "model.json").read_text())["classifier"]
    assert (about["data"], about["result"]["train_rows"], about["result"]["test_rows"]) == ("digits", 150, 50)
    with pytest.raises(ValueError, match=r"mlp with a classifier cannot be exported to timm: .* that work: onnx, safe"):
        run.export("timm", with_classifier=True)
    copy = run.export("safetensors", tmp_path / "copy")
    with pytest.raises(ValueError, match=r"has no recipe\.yaml: a classifier is fitted on the data of a run"):
        export_run(copy, "safetensors", tmp_path / "again", with_classifier=True)
    assert not list(copy.rglob("classifier*"))


def test_a_target_without_a_place_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports.find("safetensors"), "takes_classifier", False)
    with pytest.raises(
        ValueError, match=r"mlp with a classifier .*: the format has no place for a classifier\. .* onnx"
    ):
        run.export("safetensors", with_classifier=True)


def test_data_from_python_are_given_again_and_without_test_rows_some_are_held_out(tmp_path: Path) -> None:
    digits = dataclasses.replace(data.load("digits", limit=200), test=None)
    run = run_recipe(*data.bind(recipe("supcon", tmp_path, **{"train.epochs": None, "train.steps": 1}), digits))
    with pytest.raises(ValueError, match=r"learned from data given from Python.*data=…"):
        run.export("safetensors", with_classifier=True)
    subject = labelled_subject(run, data=digits)
    assert (len(subject.train_labels), len(subject.test_labels), subject.split) == (160, 40, SEEN)
    folder = run.export("safetensors", with_classifier=True, data=digits)
    text = (folder / "README.md").read_text()
    assert "of 40 held-out training rows are classified right" in text
    assert "the encoder has learned from them: on new data expect less" in text
