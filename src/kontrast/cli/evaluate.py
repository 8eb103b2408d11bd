"""``kontrast evaluate``: kNN, probes and retrieval on embeddings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

import kontrast
from kontrast.cli._arguments import AsJson, Features, Labels, Seed
from kontrast.cli._completion import complete_encoder_or_run, complete_part
from kontrast.cli._console import number, print_err, print_out, progress_bar, say_loading, table
from kontrast.cli._encoder import Size, Weights, open_encoder
from kontrast.files import dump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kontrast.evaluate import Result, Subject

HELD_OUT = 0.2


def evaluate(
    features: Features,
    labels: Labels = None,
    test_features: Annotated[
        Path | None,
        typer.Option(help="Features to test on (an .npz may have labels too). Without them a fifth is held out."),
    ] = None,
    test_labels: Annotated[Path | None, typer.Option(help="Labels of the test features.")] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="A protocol's name, with options as in wang-liu:epochs=5; may be repeated. Default: knn20, probe.",
            autocompletion=complete_part("protocol"),
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Evaluate this encoder on FEATURES, which are then data (a set, a folder, an .npz): a run's folder, "
            "or a name with --weights.",
            autocompletion=complete_encoder_or_run,
        ),
    ] = None,
    weights: Weights = None,
    size: Size = None,
    device: Annotated[str, typer.Option(help="With --encoder: auto, cpu, cuda …")] = "auto",
    workers: Annotated[int, typer.Option(min=0, help="With --encoder: processes that decode files.")] = 0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Evaluate embeddings, a run, or any encoder on any data. Every number comes with its protocol."""
    from kontrast.registry import FAMILIES

    protocols = dict(map(_parse_protocol, protocol or ["knn20", "probe"]))
    for name, options in protocols.items():  # before torch is imported
        FAMILIES["protocol"].check(name, options)
    if encoder is None and not (weights is None and size is None):
        raise ValueError("--weights and --size: must go with --encoder, the encoder that they are of")
    if encoder is not None and not (labels is None and test_features is None and test_labels is None):
        raise ValueError("--encoder: takes DATA alone. Leave out the files of labels and test features")
    about: dict[str, Any] = {}
    if encoder is not None:
        source = open_encoder(encoder, weights, size)
    else:
        say_loading(features)
    from kontrast import evaluate as stage

    if encoder is not None:
        from kontrast.models import Encoder
        from kontrast.train import subject_on
        from kontrast.train.embedding import describe

        subject = subject_on(source, str(features), device=device, workers=workers, seed=seed)
        assert isinstance(subject.encoder, Encoder)
        about = {"encoder": encoder, **describe(subject.encoder)}
        if subject.encoder.preprocessing is not None:
            print_err(f"images are read as {subject.encoder.preprocessing}")
    elif features.is_dir():  # a run has its encoder and data
        if labels is not None or test_features is not None or test_labels is not None:
            raise ValueError(
                f"FEATURES={features}: is a run's folder, which has its own data. Leave out the other files"
            )
        from kontrast.runs import Run
        from kontrast.train import protocol_defaults, subject_of

        subject = subject_of(features)
        protocols = {
            name: {**protocol_defaults(Run(features).recipe, name), **more} for name, more in protocols.items()
        }
    else:
        subject = _subject(features, labels, test_features, test_labels, seed)
    results: list[Result] = []
    with progress_bar("evaluating", each_part=True) as progress:
        for i, (name, options) in enumerate(protocols.items()):
            progress(name, i, len(protocols))
            results.append(stage.evaluate(subject, name, seed=seed, **options))
    if as_json:
        record = {
            "features": str(features),
            "dim": subject.train.shape[1],
            "classes": subject.num_classes,
            "kontrast": kontrast.__version__,
            "results": [result.record() for result in results],
            **about,
        }
        print(dump(record))
        return
    rows = f"{len(subject.train_labels):,} rows of {subject.train.shape[1]} in {subject.num_classes} classes"
    print_out(
        _table(results, f"{encoder or features.name}: {rows}; {subject.split}: {len(subject.test_labels):,} rows")
    )
    for result in results:
        for key, value in result.details.items():
            if isinstance(value, int | float | bool | str):
                text = number(float(value)) if type(value) in (int, float) else str(value)
                print_out(f"{result.name}: {key} {text}")


def _parse_protocol(text: str) -> tuple[str, dict[str, Any]]:
    """``wang-liu:epochs=5,limit=1000`` → the name and its options."""
    from kontrast.recipe import parse

    name, _, options = text.partition(":")
    return name, dict(parse(option) for option in options.split(",") if option)


def _subject(
    features: Path, labels: Path | None, test_features: Path | None, test_labels: Path | None, seed: int
) -> Subject:
    """The rows of the files; without rows for testing, a class-balanced fifth of them is held out."""
    import torch

    from kontrast.cli._files import load_array, load_arrays
    from kontrast.data.arrays import number_labels
    from kontrast.evaluate import Subject, feature_rows, hold_out

    arrays = load_arrays(features, labels)
    if test_features is not None:
        arrays = arrays.with_test(load_arrays(test_features, test_labels))
        if arrays.y_test is None:
            raise ValueError(
                f"--test-features={test_features}: must have labels. Set --test-labels, or use an .npz that has both"
            )
    elif test_labels is not None:
        if arrays.x_test is None:
            raise ValueError(
                f"--test-labels={test_labels}: must go with --test-features. Leave both out to hold out a fifth"
            )
        arrays = replace(arrays, y_test=load_array(test_labels, "labels"))
    if arrays.y is None:
        raise ValueError(f"FEATURES={features}: must have labels. Give them as a second file, or in the .npz as labels")
    if arrays.x_test is not None:
        return Subject.from_features(arrays.x, arrays.y, arrays.x_test, arrays.y_test, class_names=arrays.class_names)
    rows = feature_rows("features", arrays.x)
    y, _, names = number_labels(arrays.y, None, arrays.class_names)
    assert y is not None
    if len(y) != len(rows):
        raise ValueError(f"labels has {len(y)} entries: must have one for each of the {len(rows)} rows of features")
    train, test = hold_out(y, HELD_OUT, seed)
    single = torch.unique(y[test]).numel() < torch.unique(y).numel()
    share = f"{100 * HELD_OUT:g} % held out, class-balanced, seed {seed}"
    split = share + (", without classes of one row" if single else "")
    return Subject.from_features(rows[train], y[train], rows[test], y[test], class_names=names, split=split)


def _table(results: Sequence[Result], title: str) -> Table:
    numbers = ("top-1 %", "± error", "top-5 %")
    accuracies = table(*numbers, "protocol", right=numbers, title=title)
    for r in results:
        top5 = "–" if r.top5 is None else f"{100 * r.top5:.2f}"
        accuracies.add_row(f"{100 * r.value:.2f}", f"{100 * r.error:.2f}", top5, escape(f"{r.name}: {r.protocol}"))
    return accuracies
