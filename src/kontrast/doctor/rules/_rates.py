r"""Which learning rates the published recipes have, at a batch of 256 by the linear rule lr·256/b (`optim.scaled`).

SGD 0.036 to 0.3, LARS 0.3 to 0.4: read from `kontrast.recipes`, not written here. No paper here uses AdamW; its step is
about lr in every weight whatever the gradient, and 1e−5 to 3e−3 is what is used with weights of some hundredths.
"""

from __future__ import annotations

from functools import cache

from kontrast import recipes
from kontrast.doctor.record import Missing, Record
from kontrast.optim.scaling import scaled

BASE = 256
ADAPTIVE = {"adamw": (1e-5, 3e-3)}


def at_base(record: Record) -> float:
    """The recipe's rate, brought to a batch of 256; an adaptive optimiser's is left as it is."""
    recipe = record.recipe
    lr = float(recipe.optim.options["lr"])
    return lr if recipe.optim.name in ADAPTIVE else scaled(lr, BASE, base=recipe.train.batch_size)


def least(record: Record) -> float:
    """The least published rate, brought to this recipe's batch."""
    low = published(record.recipe.optim.name)[0]
    return low if record.recipe.optim.name in ADAPTIVE else scaled(low, record.recipe.train.batch_size, base=BASE)


@cache
def published(optimizer: str) -> tuple[float, float]:
    """The least and the largest rate of the papers' recipes with this optimiser, at a batch of 256."""
    if optimizer in ADAPTIVE:
        return ADAPTIVE[optimizer]
    papers = (book for book in recipes.BOOKS if book is not recipes.small)
    known = [recipe for book in papers for recipe in book.RECIPES.values() if recipe.optim.name == optimizer]
    rates = [scaled(recipe.optim.options["lr"], BASE, base=recipe.train.batch_size) for recipe in known]
    if not rates:
        raise Missing(f"no recipe here uses {optimizer}, so there is no rate to compare with")
    return min(rates), max(rates)


def words(record: Record) -> str:
    """The rate beside the published ones."""
    name = record.recipe.optim.name
    low, high = published(name)
    lr, batch = record.recipe.optim.options["lr"], record.recipe.train.batch_size
    where = "" if name in ADAPTIVE else f" at a batch of {batch}, {at_base(record):.3g} at 256;"
    known = "commonly" if name in ADAPTIVE else "recipes have"
    return f"{name} with lr {lr:g}{where or ';'} {known} {low:.2g} to {high:.2g}"
