"""kNN on tables, before and after a learned embedding, against the best that scikit-learn has: over several splits.

    python examples/sklearn_knn.py                          # 10 splits of each set: some minutes on a CPU
    python examples/sklearn_knn.py --sets wine --splits 3

For every seed the rows are cut in half, classes even, by that seed; one half trains, the other tests. Every classifier
is scikit-learn's kNN with its five neighbours:

    raw, cosine        on the features as they are, by Euclidean distance and by cosine
    standardised       each feature to mean 0 and deviation 1
    NCA                after scikit-learn's neighbourhood components analysis of features scaled by one number
    NCA standardised   the same of standardised features
    embedding          a `ContrastiveEncoder`

NCA and the encoder learn from the training half and its labels, with their defaults and the seed as random_state. Sets
whose features share a unit, as pixels do, have a second line, where the encoder standardises jointly: both are shown,
none is chosen by its score. The embedding is held against the best of the others, which is the one with the highest
mean on the test halves: a choice that favours them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kontrast.data import load
from kontrast.intervals import Interval, interval, paired
from kontrast.sklearn import ContrastiveEncoder

Table = tuple[NDArray[Any], NDArray[Any]]


def fashion_mini() -> Table:
    """The 2,000 test images that come with kontrast, as rows of 784 pixels."""
    images = load("fashion-mini").test
    assert images is not None
    assert images.labels is not None
    pixels = images.inputs.read(torch.arange(len(images)))
    return pixels.flatten(1).numpy().astype(np.float64), images.labels.numpy()


SETS = {
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "fashion-mini": fashion_mini,
}
ONE_UNIT = ("iris", "digits", "fashion-mini")  # centimetres, pixels
LINES = [line for name in SETS for line in ((name, f"{name}, jointly") if name in ONE_UNIT else (name,))]
PLAIN, LEARNED = ("raw", "cosine", "standardised"), ("NCA", "NCA standardised")
COLUMNS = (*PLAIN, *LEARNED, "embedding")
HEADER = [
    f"| set | rows × features | splits | {' | '.join(COLUMNS)} | embedding − best kNN | embedding − best of all |",
    "|---" * (len(COLUMNS) + 5) + "|",
]


def halves(name: str, seed: int) -> list[NDArray[Any]]:
    """Training rows, test rows, and the labels of both."""
    x, y = SETS[name]()
    return list(train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed))


@cache
def others(name: str, seed: int) -> dict[str, float]:
    """The test accuracies in % of all but the embedding, for one split."""
    x_train, x_test, y_train, y_test = halves(name, seed)
    unit = x_train.std()
    one_scale = FunctionTransformer(lambda x: x / unit)  # NCA's softmax of distances is at a loss among large numbers
    models = {
        "raw": make_pipeline(KNeighborsClassifier()),
        "cosine": make_pipeline(KNeighborsClassifier(metric="cosine")),
        "standardised": make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "NCA": make_pipeline(one_scale, NeighborhoodComponentsAnalysis(random_state=seed), KNeighborsClassifier()),
        "NCA standardised": make_pipeline(
            StandardScaler(), NeighborhoodComponentsAnalysis(random_state=seed), KNeighborsClassifier()
        ),
    }
    return {column: 100 * model.fit(x_train, y_train).score(x_test, y_test) for column, model in models.items()}


def accuracies(line: str, seed: int) -> dict[str, float]:
    """The test accuracies in % of every column, for one split."""
    name, _, jointly = line.partition(", ")
    x_train, x_test, y_train, y_test = halves(name, seed)
    encoder = ContrastiveEncoder(standardize="jointly" if jointly else True, random_state=seed)
    model = make_pipeline(encoder, KNeighborsClassifier()).fit(x_train, y_train)
    return {**others(name, seed), "embedding": 100 * model.score(x_test, y_test)}


def as_cell(value: Interval, spec: str = ".2f") -> str:
    """Mean and half-width; how many there are stands in a column of its own."""
    return f"{value:{spec}}".partition(" (n")[0]


def row(line: str, splits: int) -> str:
    """A line of the table: means over the splits with Student's 95 % interval, differences split by split."""
    by_seed = {seed: accuracies(line, seed) for seed in range(splits)}
    scores = {column: {seed: values[column] for seed, values in by_seed.items()} for column in COLUMNS}
    cells = [as_cell(interval(scores[column].values())) for column in COLUMNS]
    for against in (PLAIN, (*PLAIN, *LEARNED)):
        best = max(against, key=lambda column: sum(scores[column].values()))
        cells.append(f"{as_cell(paired(scores['embedding'], scores[best]), '+.2f')} ({best})")
    rows, features = SETS[line.partition(", ")[0]]()[0].shape
    return f"| {line} | {rows:,} × {features} | {splits} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--splits", type=int, default=10)
    wanted = parser.parse_args(arguments)
    print("\n".join(HEADER), flush=True)
    for line in LINES:
        if line.partition(", ")[0] in wanted.sets:
            print(row(line, wanted.splits), flush=True)


if __name__ == "__main__":
    main()
