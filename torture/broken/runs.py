"""Runs that find their files harmed, half-way or when they are done: what they say, and whether they end the same.

Every case has a folder of its own and ends with a comparison of every file with those of an undisturbed run
(`storm.same`): bit for bit, but for what the clock says.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from broken.outcome import HARMS, Row, harmed
from kontrast.data.cache import PAGE
from kontrast.recipe import Recipe
from kontrast.train import RunFolder, Training, make_job, resolve, run_recipe
from kontrast.train.folder import LEFT, digest
from kontrast.train.metrics import Metrics
from storm import same
from storm.kinds import photographs

HALF = 51  # of 100 steps; checkpoints are written every third


@dataclass
class Lab:
    """Recipes, and the undisturbed run of each, made once."""

    folder: Path
    count: int = 0

    def recipe(self, method: str = "moco", size: int | None = None, **sections: Any) -> Recipe:
        """Of a hundred steps; ``size`` is that of the views."""
        queue = {"queue": 50, "key_parts": 1} if method == "moco" else {}
        given: dict[str, Any] = {
            "name": f"{method}-faults",
            "data": {"name": "digits", "limit": 200, "test_limit": 100},
            "augment": [{"name": "crop-flip", "padding": 1}] * 2,
            "encoder": {"name": "mlp", "hidden": 32, "features": 16},
            "head": {"name": "wang-liu", "out": 12},
            "method": {"name": method, **queue},
            "optim": {"name": "sgd", "lr": 0.05},
            "train": {"steps": 100, "batch_size": 32},
            "evaluate": {"protocols": ["knn20"]},
            "run": {"threads": 1, "progress": False, "log_every": 2, "checkpoint_every": 3, "monitor_every": 25},
        }
        for section, values in sections.items():
            given[section] = {**given[section], **values} if isinstance(values, dict) else values
        made = Recipe.of(given)
        return resolve(made if size is None else made.override({"augment.size": size}))

    def whole(self, recipe: Recipe) -> Path:
        """The folder that the undisturbed run's folder lies in."""
        place = self.folder / "whole" / recipe.hash
        with quiet():
            run_recipe(placed(recipe, place))
        return place

    def place(self) -> Path:
        """A new folder for a case."""
        self.count += 1
        return self.folder / f"case-{self.count}"

    def half(self, recipe: Recipe, then: Callable[[], object] | None = None) -> tuple[Recipe, RunFolder]:
        """A run that was interrupted after a checkpoint in the middle; ``then`` is done there, and it goes on."""
        recipe = placed(recipe, self.place())
        folder = RunFolder.of(recipe)
        folder.begin(recipe)
        with quiet():
            training = _Halted(make_job(recipe, torch.device("cpu")), folder)
            training.then = then
            with folder.alone(), contextlib.suppress(KeyboardInterrupt):
                folder.note("training", data_file=digest(recipe.data.name))
                training.run()
        return recipe, folder

    def ended(self, recipe: Recipe) -> list[str]:
        """How the run, called to its end, differs from the undisturbed one."""
        with quiet():
            run_recipe(recipe)
        found = same.runs(self.whole(recipe), Path(recipe.run.out))
        return [
            difference for difference in found if "recipe.yaml: run: " not in difference
        ]  # how, not what, it was run


class _Halted(Training):
    """Ends at `HALF`, or does something there and goes on."""

    then: Callable[[], object] | None = None

    def save(self, metrics: Metrics | None) -> None:
        super().save(metrics)
        if self.state.step == HALF:
            if self.then is None:
                raise KeyboardInterrupt
            self.then()


def placed(recipe: Recipe, out: Path) -> Recipe:
    """The same recipe with its folder in another place."""
    return recipe.override({"run.out": str(out)})


@contextmanager
def quiet() -> Iterator[io.StringIO]:
    """What is said on stderr is caught, warnings too."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield said
    said.write("\n".join(str(warning.message) for warning in seen))


def judged(row: Row, lab: Lab, recipe: Recipe, file: str, what: str, mend: Callable[[], object] | None = None) -> None:
    """Calls the run again: it must name the file and end the same; with ``mend`` it must refuse until that is done."""
    with quiet() as said:
        try:
            run_recipe(recipe)
            refused = False
        except (ValueError, OSError) as error:
            refused = True
            said.write(str(error))
        except Exception as error:  # what nobody catches
            row.add("missed", f"{what}: {type(error).__name__}: {error}")
            return
    if file not in said.getvalue():
        row.add("missed", f"{what}: {file} is not named in {said.getvalue()!r}")
    elif refused != (mend is not None):
        row.add("missed", f"{what}: {'refused' if refused else 'not refused'}: {said.getvalue()}")
    else:
        if mend is not None:
            mend()
        differences = lab.ended(recipe)
        row.add("missed" if differences else "went on", f"{what}: {differences}")


def checkpoints(lab: Lab, cases: int, draw: random.Random) -> list[Row]:
    """The newest checkpoint, and the log, of a run that was interrupted."""
    rows = []
    for file, what in (("checkpoints/last.pt", "newest checkpoint"), ("metrics.jsonl", "log, half-way")):
        row = Row(what, "flipped, cut or gone")
        for i in range(cases):
            recipe, folder = lab.half(lab.recipe())
            judged(row, lab, recipe, Path(file).name, harmed(folder.path / file, HARMS[i % 3], draw))
        rows.append(row)
    return rows


def refusals(lab: Lab, draw: random.Random) -> list[Row]:
    """What cannot be made anew: the best weights, both checkpoints, run.json that is no JSON; put back, all is well."""
    best, both, state = (
        Row("best.pt", "flipped, cut or gone"),
        Row("both checkpoints", "flipped"),
        Row("run.json", "cut"),
    )
    patient = lab.recipe("supcon", data={"validation": 0.2}, train={"patience": 50})
    for harm in HARMS:
        recipe, folder = lab.half(patient)
        kept = folder.best.read_bytes()
        what = harmed(folder.best, harm, draw)
        judged(best, lab, recipe, str(folder.best), what, partial(folder.best.write_bytes, kept))
    for _ in range(3):
        recipe, folder = lab.half(lab.recipe())
        content = {path: path.read_bytes() for path in (folder.last, folder.previous)}
        what = " and ".join(harmed(path, "flipped", draw) for path in content)
        judged(both, lab, recipe, str(folder.last), what, partial(_put_back, content))
        recipe, folder = lab.half(lab.recipe())
        file = folder.path / "run.json"
        judged(state, lab, recipe, str(file), harmed(file, "cut", draw), file.unlink)
    return [best, both, state]


def _put_back(content: dict[Path, bytes]) -> None:
    for path, kept in content.items():
        path.write_bytes(kept)


def finished(lab: Lab, draw: random.Random) -> list[Row]:
    """Each file of a run that is done."""
    row = Row("each file of a finished run", "flipped, cut or gone; made anew")
    for name in LEFT:
        for harm in HARMS:
            recipe = placed(lab.recipe(), lab.place())
            shutil.copytree(lab.whole(recipe), recipe.run.out)
            judged(row, lab, recipe, name, harmed(RunFolder.of(recipe).path / name, harm, draw))
    return [row]


def data(lab: Lab, draw: random.Random) -> list[Row]:
    """The data file, the folder of images and the cache of them, while a run learns from them."""
    file = lab.folder / "data.npz"
    made = torch.Generator().manual_seed(1)
    pixels = torch.randint(256, (240, 8, 8), generator=made, dtype=torch.uint8).numpy()
    np.savez(file, x_train=pixels[:200], y_train=np.arange(200) % 5, x_test=pixels[200:], y_test=np.arange(40) % 5)
    between = Row(".npz of data, between two calls", "flipped, cut or gone; put back")
    kept = file.read_bytes()
    for harm in HARMS:
        recipe, _ = lab.half(lab.recipe(data={"name": str(file)}))
        what = harmed(file, harm, draw)
        judged(between, lab, recipe, str(file), what, lambda: file.write_bytes(kept))
        file.write_bytes(kept)
    return [between, *_images(lab)]


def _images(lab: Lab) -> list[Row]:
    images, away = lab.folder / "images", lab.folder / "away"
    photographs(images, 200)
    data: dict[str, Any] = {"name": str(images), "limit": None, "test_limit": None}
    sections: dict[str, Any] = {"augment": [{"name": "weak"}] * 2, "evaluate": {"protocols": []}}
    vanished = Row("folder of images, while it is read", "gone; put back")
    for workers in (0, 2):
        files = lab.recipe("simclr", 16, data=data, run={"workers": workers}, **sections)
        run = _while(lab, files, partial(images.rename, away))
        judged_while(vanished, lab, run, ".png", f"{workers} workers", lambda: away.rename(images))
    cache = Row("image cache, while it is read", "flipped or cut; made anew")
    for harm in ("flipped", "cut"):
        for workers in (0, 2):
            root = lab.folder / f"root-{harm}-{workers}"
            how = {"workers": workers, "cache": True, "data_root": str(root)}
            cached = lab.recipe("simclr", data={**data, "size": 16}, run=how, **sections)
            run = _while(lab, cached, partial(_in_place, root, harm))
            judged_while(cache, lab, run, ".kimg", f"{harm}, {workers} workers")
    return [vanished, cache]


def _in_place(root: Path, harm: str) -> None:
    """Harms the cache file that others have open, and keeps its time."""
    (path,) = root.rglob("*.kimg")
    times = path.stat()
    with path.open("r+b") as file:
        if harm == "cut":
            file.truncate(PAGE + 5000)
        else:
            for place in range(PAGE + 10, times.st_size - 5000, 500):  # one of them is read soon
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ 4]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _while(lab: Lab, recipe: Recipe, then: Callable[[], object]) -> Callable[[], Recipe]:
    def run() -> Recipe:
        lab.whole(recipe)
        return lab.half(recipe, then)[0]

    return run


def judged_while(
    row: Row, lab: Lab, run: Callable[[], Recipe], file: str, what: str, mend: Callable[[], object] | None = None
) -> None:
    """A run during which something happens: it must end with an error that names the file, and go on when called."""
    before = lab.count
    try:
        run()
        row.add("missed", f"{what}: nothing was noticed")
        return
    except (ValueError, OSError) as error:
        said = str(error)
    except Exception as error:
        row.add("missed", f"{what}: {type(error).__name__}: {error}")
        return
    finally:
        if mend is not None:
            mend()
    if file not in said:
        row.add("missed", f"{what}: {file} is not named in {said!r}")
        return
    folder = next((lab.folder / f"case-{before + 1}").glob("*/recipe.yaml"))
    differences = lab.ended(Recipe.read(folder))
    row.add("missed" if differences else "went on", f"{what}: {differences}")
