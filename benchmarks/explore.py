"""Exploring: time and memory, and near-duplicates, label errors and the map beside cleanlab, imagededup and others.

    python benchmarks/explore.py --photos FOLDER --weights FILE --images FILE    everything (half an hour)
    python benchmarks/explore.py --photos FOLDER --weights FILE --quick          the photos alone, fewer draws

The folder has photos in classes, in train and val; the weights are those of EfficientNet-Lite0 (timm's name
tf_efficientnet_lite0); the file has images and labels (x_train, y_train). For the page: the Imagenette sample of 800
photos at 320 pixels and CIFAR-10.

**Near-duplicates.** A tenth of the photos is copied into a class folder of either split: as PNG, as JPEG of quality 20
to 85, as WebP of quality 50, resized by 0.25 to 1.7 before that, or 96 pixels wide. A pair that is found is right if it
is a photo and its copy. imagededup reads the same files and takes its default threshold; its CNN needs weights from the
network and is left out. Times hold reading, hashing (or thumbnails and signatures) and searching, not the encoder.

Times are CPU seconds of all threads and of processes that are started: other work on the machine does not count.

**Label errors.** 5 % of the labels of the photos (without copies) are moved to the class whose mean feature is the most
similar to the row. kontrast and cleanlab get the same features. cleanlab's probabilities come from scikit-learn's
logistic regression on standardised features, five folds, as its documentation does it; its list is
find_label_issues(labels, probabilities) with the defaults. Means over draws; ± is the standard error.

**The map.** The first rows of the images: kontrast's map, and openTSNE's and umap-learn's with their defaults, two
threads each where they have threads. Trustworthiness is that of the 15 nearest.

**Time and memory.** Features (1,280 numbers, of the images at 64 pixels) are given: what is measured is all that
follows. Peak memory is that of the whole process, features included.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

import kontrast
from kontrast.data import Memory
from kontrast.data import load as load_data
from kontrast.evaluate import extract, nearest_others
from kontrast.explore import Catalogue, collect, duplicates, label_errors, project, reading, trustworthiness, writing
from kontrast.explore import thumbnails as pictures
from kontrast.train.embedding import features
from measure import Sections, markdown, number, resident, setting, write_page

ENCODER = "timm/tf_efficientnet_lite0"
SHARE = 0.05  # of the labels
Pair = tuple[str, str]


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads and of processes that have ended, and what the call gives."""
    start = sum(os.times()[:4])
    value = call()
    return sum(os.times()[:4]) - start, value


# ----------------------------------------------------------------------------------------------------- near-duplicates


def plant_copies(photos: Path, folder: Path, seed: int) -> set[Pair]:
    """Copy the photos, and a tenth of them once more; the pairs, by the files' names."""
    shutil.copytree(photos, folder)
    draw = np.random.default_rng(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    splits = sorted(path.name for path in folder.iterdir())
    pairs: set[Pair] = set()
    for i, row in enumerate(draw.choice(len(files), len(files) // 10, replace=False)):
        image = Image.open(files[row]).convert("RGB")
        scale = draw.choice([0.25, 0.33, 0.5, 0.7, 0.9, 1.3, 1.7])
        how = draw.choice([Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS])
        other = image.resize([max(1, round(side * scale)) for side in image.size], Image.Resampling(how))
        place = folder / str(draw.choice(splits)) / files[row].parent.name / f"copy{i}"
        kind, quality = i % 8, int(draw.choice([20, 30, 50, 70, 85]))
        if kind in (0, 3, 4):
            place = place.with_suffix(".png")
            (image if kind == 0 else other).save(place)
        elif kind == 2:
            place = place.with_suffix(".webp")
            image.save(place, quality=50)
        elif kind == 7:
            place = place.with_suffix(".jpg")
            image.resize((96, 96 * image.height // image.width)).save(place, quality=60)
        else:
            place = place.with_suffix(".jpg")
            (image if kind == 1 else other).save(place, quality=quality)
        pairs.add(pair(str(files[row].relative_to(folder)), str(place.relative_to(folder))))
    return pairs


def pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def find_ours(folder: Path, net: Any) -> tuple[float, set[Pair]]:
    """The time without the encoder's, which gives the neighbours."""
    data = load_data(folder, memory=0)
    parts = [data.train, *([data.test] if data.test is not None else [])]
    names = [name for part in parts for name in part.names or ()]
    x = torch.cat([features(net, folder, split=split).features for split in ("train", "test")[: len(parts)]])

    def search() -> set[Pair]:
        small = pictures.read([part.inputs for part in parts], workers=1)
        near = nearest_others(x, 10)[1]
        found = duplicates(x, near, signatures=small.signatures, shapes=small.shapes)
        return {pair(names[a], names[b]) for group in found for a, b in combinations(group.rows, 2)}

    return timed(search)


def find_hashes(folder: Path, name: str) -> tuple[float, set[Pair]]:
    """imagededup's hash of this name."""
    methods = importlib.import_module("imagededup.methods")
    hasher = getattr(methods, name)(verbose=False)

    def search() -> set[Pair]:
        codes = hasher.encode_images(image_dir=folder, recursive=True, num_enc_workers=0)
        found = hasher.find_duplicates(encoding_map=codes, num_dist_workers=0)
        return {pair(a, b) for a, others in found.items() for b in others}

    return timed(search)


def copies(photos: Path, net: Any, draws: int) -> str:
    finders: dict[str, Callable[[Path], tuple[float, set[Pair]]]] = {"kontrast": lambda folder: find_ours(folder, net)}
    if has("imagededup"):
        for name in ("PHash", "DHash", "WHash", "AHash"):
            finders[f"imagededup {name}"] = lambda folder, name=name: find_hashes(folder, name)  # type: ignore[misc]
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in finders}
    for seed in range(draws):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "photos")
            planted = plant_copies(photos, folder, seed)
            for name, find in finders.items():
                seconds, found = find(folder)
                hits = len(found & planted)
                seen[name].append((hits / max(1, len(found)), hits / len(planted), seconds))
    return "**Near-duplicates**\n\n" + scores(seen)


def scores(seen: dict[str, list[tuple[float, float, float]]]) -> str:
    rows = []
    for name, values in seen.items():
        precision, recall, seconds = zip(*values, strict=True)
        rows.append([name, percent(precision), percent(recall), number(mean(seconds))])
    return markdown(["", "precision %", "recall %", "CPU s"], rows)


def percent(values: Sequence[float]) -> str:
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{100 * mean(values):.1f} ± {100 * error:.1f}"


# -------------------------------------------------------------------------------------------------------- label errors


def move_labels(x: Tensor, y: Tensor, seed: int) -> tuple[Tensor, set[int]]:
    """Move labels to the class whose mean feature is the most similar."""
    draw = torch.Generator().manual_seed(1000 + seed)
    unit = torch.nn.functional.normalize(x)
    means = torch.stack([unit[y == label].mean(0) for label in range(int(y.max()) + 1)])
    similar = (unit @ means.T).scatter(1, y[:, None], -torch.inf)
    rows = torch.randperm(len(y), generator=draw)[: round(SHARE * len(y))]
    given = y.clone()
    given[rows] = similar[rows].argmax(1)
    return given, set(rows.tolist())


def judge_ours(x: Tensor, y: Tensor) -> tuple[list[int], Tensor]:
    found = label_errors(x, y, int(y.max()) + 1)
    assert found is not None
    return found.rows, found.probability


def judge_cleanlab(x: Tensor, y: Tensor) -> tuple[list[int], Tensor]:
    issues = importlib.import_module("cleanlab.filter").find_label_issues
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    p = cross_val_predict(model, x.numpy(), y.numpy(), cv=5, method="predict_proba")
    return np.flatnonzero(issues(y.numpy(), p)).tolist(), torch.from_numpy(1 - p[np.arange(len(y)), y.numpy()])


def labels(x: Tensor, y: Tensor, draws: int) -> str:
    judges = {"kontrast": judge_ours} | ({"cleanlab": judge_cleanlab} if has("cleanlab") else {})
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in judges}
    ranking: dict[str, list[float]] = {name: [] for name in judges}
    believed: list[tuple[float, bool]] = []
    for seed in range(draws):
        given, rows = move_labels(x, y, seed)
        for name, judge in judges.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seconds, (found, score) = timed(lambda judge=judge, given=given: judge(x, given))  # type: ignore[misc]
            hits = len(rows & set(found))
            seen[name].append((hits / max(1, len(found)), hits / len(rows), seconds))
            ranking[name].append(average_precision(score, rows))
            if name == "kontrast":
                believed += [(float(score[row]), row in rows) for row in found]
    table = scores(seen)
    order = markdown(["", "average precision of the order"], [[name, percent(v)] for name, v in ranking.items()])
    told = mean(p for p, _ in believed), mean(wrong for _, wrong in believed)
    words = f"Of the rows that kontrast lists, the mean probability is {told[0]:.2f}; {told[1]:.2f} of them were moved."
    return f"**Label errors**\n\n{table}\n\n{order}\n\n{words}"


def at_size(x: Tensor, y: Tensor) -> str:
    """The time alone: whether the list is right is measured on photos."""
    judges = {"kontrast": judge_ours} | ({"cleanlab": judge_cleanlab} if has("cleanlab") else {})
    given, _ = move_labels(x, y, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [[name, number(timed(lambda judge=judge: judge(x, given))[0])] for name, judge in judges.items()]  # type: ignore[misc]
    return f"**Label errors of {len(x):,} rows**\n\n" + markdown(["", "CPU s"], rows)


def average_precision(score: Tensor, rows: set[int]) -> float:
    right = torch.tensor([row in rows for row in score.argsort(descending=True, stable=True).tolist()])
    return float((right.cumsum(0) / torch.arange(1, len(right) + 1))[right].mean())


# ---------------------------------------------------------------------------------------------- the map, time, memory


def maps(x: Tensor) -> str:
    unit = torch.nn.functional.normalize(x)
    near = nearest_others(x, 15)[1]
    calls: dict[str, Callable[[], Any]] = {"kontrast, without its neighbours": lambda: project(x, near)}
    calls["kontrast"] = lambda: project(x, nearest_others(x, 15)[1])
    if has("openTSNE"):
        tsne = importlib.import_module("openTSNE").TSNE
        calls["openTSNE"] = lambda: tsne(n_jobs=2, random_state=0).fit(unit.numpy())
    if has("umap"):
        umap = importlib.import_module("umap").UMAP
        calls["umap-learn"] = lambda: umap(n_jobs=2).fit_transform(unit.numpy())
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in calls.items():
            seconds, places = timed(call)
            trust = trustworthiness(x, torch.as_tensor(np.asarray(places), dtype=torch.float32))
            rows.append([name, number(seconds), f"{trust:.4f}"])
    return f"**The map of {len(x):,} rows**\n\n" + markdown(["", "CPU s", "trustworthiness"], rows)


def embed_images(file: Path, weights: Path, rows: int, to: Path) -> None:
    """Features of the first rows at 64 pixels, written with the images."""
    net = kontrast.load(ENCODER, pretrained=weights, image_size=64)
    data = load_data(file, limit=rows)
    how = net.preprocessing
    assert how is not None
    x = extract(net, data.train, mean=how.mean, std=how.std, size=64, fraction=1.0, interpolation=how.interpolation)
    assert isinstance(data.train.inputs, Memory)
    assert data.train.labels is not None
    np.savez(to, features=x.numpy(), images=data.train.inputs.values.numpy(), labels=data.train.labels.numpy())


def explore_all(file: Path, rows: int) -> dict[str, float]:
    """Everything that follows the features, with the seconds of each part."""
    with np.load(file) as arrays:
        x, images, y = (torch.from_numpy(arrays[name][:rows]) for name in ("features", "images", "labels"))
    times: dict[str, float] = {}
    wall, begin = time.perf_counter(), time.process_time()
    most = reading.MOST_BYTES if rows <= reading.ONE_FILE else float("inf")
    small = pictures.read([Memory(images)], most_bytes=most)
    times["thumbnails"] = time.process_time() - begin
    marks: dict[str, float] = {}

    def mark(what: str, done: int, of: int) -> None:
        marks.setdefault(what, time.process_time())

    test = ["train"] * (rows - rows // 6) + ["test"] * (rows // 6)
    found = collect(Catalogue(x, test, labels=y, thumbnails=small, title="images", encoder=ENCODER), progress=mark)
    ends = [*list(marks.values())[1:], time.process_time()]
    times |= {name: end - start for (name, start), end in zip(marks.items(), ends, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        times["page and lists"], files = timed(lambda: writing.write(found, writing.check(Path(folder))))
        times["page, MB"] = files[0].stat().st_size / 1e6
        times["pictures beside, MB"] = sum(p.stat().st_size for p in Path(folder).rglob("*.jpg")) / 1e6
    times["all"] = sum(value for name, value in times.items() if not name.endswith("MB"))
    times["all, on the clock"] = time.perf_counter() - wall
    times["peak memory, MB"] = resident()[1]
    times["near-duplicate groups found"] = len(found.groups)
    times["trustworthiness"] = found.trust
    return times


def sizes(file: Path, counts: Sequence[int], threads: int) -> str:
    columns = []
    for count in counts:
        command = [sys.executable, sys.argv[0], "--threads", str(threads), "--explore", str(file), str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        columns.append(json.loads(done.stdout.splitlines()[-1]))
    rows = []
    for name in columns[0]:
        others = name.endswith("MB") or name in ("trustworthiness", "near-duplicate groups found")
        unit = "" if others else ", s" if name.endswith("clock") else ", CPU s"
        digits = [f"{c[name]:.4f}" if name == "trustworthiness" else number(c[name]) for c in columns]
        rows.append([f"{name}{unit}", *digits])
    title = "**Time and memory: images of 32 pixels, features of 1,280 numbers**"
    return f"{title}\n\n" + markdown(["", *(f"{count:,} images" for count in counts)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, help="a folder of photos in classes, with train and val")
    parser.add_argument("--weights", type=Path, help="weights of EfficientNet-Lite0")
    parser.add_argument("--images", type=Path, help="an .npz file with x_train and y_train, for time and memory")
    parser.add_argument("--quick", action="store_true", help="fewer draws, and no images")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/explore.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--draws", type=int, default=None)
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--explore", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.explore:
        print(json.dumps(explore_all(Path(arguments.explore[0]), int(arguments.explore[1]))))
        return
    if arguments.photos is None or arguments.weights is None:
        parser.error("--photos and --weights are needed")
    sections = Sections()
    sections.show(f"{setting()}, float32.")
    absent = [name for name in ("cleanlab", "imagededup", "openTSNE", "umap") if not has(name)]
    if absent:
        sections.show(f"Left out because not installed: {', '.join(absent)}.")
    draws = arguments.draws or (2 if arguments.quick else 10)
    net = kontrast.load(ENCODER, pretrained=arguments.weights)
    sections.show(copies(arguments.photos, net, max(1, draws // 3)))
    parts = [features(net, arguments.photos, split=split) for split in ("train", "test")]
    x, y = torch.cat([part.features for part in parts]), torch.cat([part.rows.require_labels("this") for part in parts])
    sections.show(labels(x, y, draws))
    if arguments.images is not None and not arguments.quick:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "images.npz")
            embed_images(arguments.images, arguments.weights, max(arguments.counts), file)
            with np.load(file) as arrays:
                some, classes = (
                    torch.from_numpy(arrays[key][: min(arguments.counts)]) for key in ("features", "labels")
                )
            sections.show(at_size(some, classes))
            sections.show(maps(some))
            sections.show(sizes(file, arguments.counts, arguments.threads))
    if arguments.write:
        write_page("explore", __doc__, sections)


if __name__ == "__main__":
    main()
