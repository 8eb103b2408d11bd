"""An encoder as it is before its first step, to be evaluated beside the trained one."""

from __future__ import annotations

from kontrast.evaluate import Subject
from kontrast.recipe import Recipe
from kontrast.train.job import load_data, make_encoder, view_size
from kontrast.train.running import _subject, pick_device


def untrained_subject(recipe: Recipe) -> Subject:
    """The initial weights that a run of this recipe starts from, and its data, as the run itself would be evaluated.

    Args:
        recipe: Its seed, data, encoder and last view count; method and training do not.

    Returns:
        What `kontrast.evaluate.evaluate` takes.

    Raises:
        ValueError: The data cannot be read, or the encoder does not take them.

    >>> from kontrast.evaluate import evaluate
    >>> small = {"data": {"name": "digits", "limit": 200, "test_limit": 100}, "encoder": "mlp"}
    >>> recipe = Recipe.of({**small, "method": "supcon", "train": {"epochs": 1}})
    >>> evaluate(untrained_subject(recipe), "knn20").name
    'knn20'
    """
    data, train, _ = load_data(recipe)
    size = view_size(recipe, data, train)
    encoder = make_encoder(recipe, data, size).eval()
    return _subject(recipe, encoder, data, size, pick_device(recipe.run.device))
