"""kNN on tables, before and after a learned embedding: figures over several splits.

    python examples/sklearn_knn.py                          # 10 splits of each set: a minute or two on a CPU
    python examples/sklearn_knn.py --sets wine --splits 3

For every seed the rows are cut in half, classes even, by that seed; one half trains, the other tests. Every classifier
is scikit-learn's kNN with its five neighbours: on standardised features, on those after its neighbourhood components
analysis (NCA), and on a `ContrastiveEncoder`. Both learn from the training half and its labels, with their defaults and
the seed as random_state. Nothing is chosen on these sets: the encoder's defaults come from fashion-mini.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kontrast.experiments.intervals import interval, paired
from kontrast.sklearn import ContrastiveEncoder

SETS = {"digits": datasets.load_digits, "wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}
HEADER = [
    "| set | rows × features | standardised | NCA | embedding | embedding − standardised | embedding − NCA |",
    "|---|---|---|---|---|---|---|",
]


def accuracies(name: str, seed: int) -> tuple[float, ...]:
    """The test accuracies in % of kNN on standardised features, after NCA, and on the embedding, for one split."""
    x, y = SETS[name](return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)
    before = (
        [StandardScaler()],
        [StandardScaler(), NeighborhoodComponentsAnalysis(random_state=seed)],
        [ContrastiveEncoder(random_state=seed)],  # standardises by itself
    )
    models = [make_pipeline(*steps, KNeighborsClassifier()).fit(x_train, y_train) for steps in before]
    return tuple(100 * model.score(x_test, y_test) for model in models)


def row(name: str, splits: int) -> str:
    """A line of the table: means over the splits with Student's 95 % interval, differences split by split."""
    found = {seed: accuracies(name, seed) for seed in range(splits)}
    plain, nca, embedding = ({seed: values[i] for seed, values in found.items()} for i in range(3))
    shown = [f"{interval(values.values()):.2f}" for values in (plain, nca, embedding)]
    shown += [f"{paired(embedding, other):+.2f}" for other in (plain, nca)]
    rows, features = SETS[name](return_X_y=True)[0].shape
    return f"| {name} | {rows:,} × {features} | {' | '.join(shown)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--splits", type=int, default=10)
    wanted = parser.parse_args(arguments)
    print("\n".join(HEADER), flush=True)
    for name in wanted.sets:
        print(row(name, wanted.splits), flush=True)


if __name__ == "__main__":
    main()
