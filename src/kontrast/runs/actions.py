"""What one does with a finished run in Python: its encoder, features, page, charts, a comparison, an export.

Each method is one call of the stage that does it, and the commands make the same call: `kontrast.train.load`,
`kontrast.train.exports`, `kontrast.report`, `kontrast.pipeline`. So this file (and `kontrast.runs.displayed`, for the
same reason) names stages, as no other root module does. It imports them inside its methods: a run is read without them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kontrast.runs.displayed import Displayed
from kontrast.runs.folder import File, Folder
from kontrast.runs.reading import read_json_file
from kontrast.runs.schemas import Result, State

if TYPE_CHECKING:
    from kontrast.models import Encoder
    from kontrast.report.comparison.differences import Comparison
    from kontrast.report.run.charts import Charts
    from kontrast.report.written import Written

Progress = Callable[[str, int, int], object]


class Actions(Displayed, Folder):
    """The methods of `kontrast.Run` that need a stage.

    >>> import kontrast
    >>> kontrast.Run("runs/mine")
    Run('runs/mine', not begun)
    """

    state_file = File("run.json")
    result_file = File("result.json")

    def __repr__(self) -> str:
        """The folder, the status, and the first accuracy."""
        state = read_json_file(self.state_file, State, []) or State()
        words = [repr(str(self.path)), state.status or "not begun"]
        results = (read_json_file(self.result_file, Result, []) or Result()).results
        words += [f"{first.name} {100 * first.value:.1f} %" for first in results[:1] if first.value is not None]
        return f"{type(self).__name__}({', '.join(words)})"

    def encoder(self) -> Encoder:
        """The trained encoder, in eval mode on the CPU: `kontrast.load`."""
        from kontrast.train import load

        return load(self)

    def embed(
        self,
        images: Any,
        *,
        batch_size: int | None = None,
        device: str | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """The features of images, as the run's evaluation and ``kontrast embed`` compute them.

        Args:
            images: A list of paths, PIL images or arrays, or one of them (`kontrast.models.Encoder.embed`).
            batch_size: Rows that go through the encoder at once; None measures one row and chooses.
            device: ``cpu``, ``cuda``, …; the CPU by default.
            progress: Called with ``(what, done, of)`` now and then.

        Returns:
            A tensor, float32 ``[N, D]``.

        Raises:
            ValueError: The run has no encoder, or an image cannot be read.
        """
        return self.encoder().embed(images, batch_size=batch_size, device=device, progress=progress)

    def export(
        self,
        to: str,
        folder: str | os.PathLike[str] | None = None,
        *,
        with_classifier: bool = False,
        data: Any = None,
        **options: Any,
    ) -> Path:
        """Export the encoder for another tool, as ``kontrast export`` does: `kontrast.train.exports.export_run`.

        Args:
            to: safetensors, onnx, timm or torchvision.
            folder: Where to write; ``exports/<to>`` of the run by default.
            with_classifier: Whether to fit a linear classifier on the run's data and export it with the encoder.
            data: Labelled data for the classifier; the run's own if left out.
            **options: More of `kontrast.train.exports.export_run`.

        Returns:
            The folder.

        Raises:
            ValueError: The target cannot hold this encoder, or there are no labels for a classifier.
        """
        from kontrast.train.exports import export_run

        return export_run(self, to, folder, with_classifier=with_classifier, data=data, **options)  # type: ignore[arg-type]

    def report(self, out: str | os.PathLike[str] | None = None, *, figures: str | None = None) -> Written:
        """Write the page of the run, as ``kontrast report`` does.

        Args:
            out: The page's file; report.html in the folder by default.
            figures: svg, pdf or png: write every chart as a file too.

        Returns:
            The page, which is a path to its file; in Jupyter it is shown.

        Raises:
            ValueError: The folder is not a run's, or the page cannot be written.
        """
        from kontrast.pipeline import report

        return report([self.path], None if out is None else Path(out), figures=figures)

    @property
    def charts(self) -> Charts:
        """The charts of the page as Altair objects: ``run.charts.embedding_map()``, ``run.charts["loss"]``."""
        from kontrast.report.run.charts import Charts

        return Charts(self.path)

    def compare(self, *others: str | os.PathLike[str]) -> Comparison:
        """Compare the run with others: differences by every protocol, paired where both were tested on the same rows.

        Args:
            *others: Runs, or their folders.

        Returns:
            A table that displays itself; ``differences`` has its numbers, ``settings`` what differs in the recipes.

        Raises:
            ValueError: There is no other run, or a folder is not a run's.
        """
        from kontrast.report.comparison.differences import compare

        return compare(self.path, *map(Path, others))
