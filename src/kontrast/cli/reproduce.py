"""``kontrast reproduce``: run a table or figure of a paper, and compare it with the paper."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from kontrast.cli._arguments import AsJson, Out
from kontrast.cli._completion import complete_experiment, complete_setting
from kontrast.cli._console import (
    handle_signals,
    print_err,
    print_failure,
    print_out,
    print_path,
    printable,
    say_loading,
)
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.experiments.engines import Engine, Event
    from kontrast.experiments.experiment import Experiment
    from kontrast.experiments.ledger import Ledger
    from kontrast.experiments.sweep import Sweep


class Scale(StrEnum):
    """The presets."""

    paper = "paper"
    cpu = "cpu"
    smoke = "smoke"


class EngineName(StrEnum):
    """The engines."""

    local = "local"
    ray = "ray"


def reproduce(
    name: Annotated[
        str,
        typer.Argument(help="An experiment (`kontrast list experiments`).", autocompletion=complete_experiment),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            help="An axis's values, temperature=[0.1,0.2] data=photos.npz, or overrides of every recipe.",
            autocompletion=complete_setting,
        ),
    ] = None,
    preset: Annotated[
        Scale, typer.Option("--preset", help="paper: full scale; cpu: minutes a run; smoke: seconds.")
    ] = Scale.cpu,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds; the preset's own number if left out.")
    ] = None,
    engine: Annotated[
        EngineName, typer.Option("--engine", help="Run in processes here, or on a Ray cluster.")
    ] = EngineName.local,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", help="Runs at a time (local); they share the cores. On a CPU one per core if left out."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", help="Threads of each run (local); OMP_NUM_THREADS, or its share of the cores, if left out."
        ),
    ] = None,
    cpus: Annotated[float, typer.Option("--cpus", help="CPUs that each run needs (ray).")] = 1.0,
    gpus: Annotated[float, typer.Option("--gpus", help="GPUs that each run needs (ray).")] = 0.0,
    address: Annotated[
        str | None, typer.Option("--address", help="The address of a Ray cluster; one is started here if left out.")
    ] = None,
    to: Out = Path("runs"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan with an estimate of the time.")] = False,
    only_read: Annotated[
        bool,
        typer.Option("--only-read", help="Run nothing; make the tables from finished runs, here or in the ledger."),
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            help="A folder of finished cells as text: cells with the same recipe are not run again. With --only-read "
            "docs/results/ledger, if it exists.",
        ),
    ] = None,
    judge_paper: Annotated[
        bool,
        typer.Option("--judge-paper", help="Run nothing; test the claims on the numbers that the paper prints."),
    ] = False,
    folders: Annotated[bool, typer.Option("--folders", help="List the run folders of every cell too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run what is left of a paper's experiment, and print the paper's values, ours, and which claims hold."""
    from kontrast import experiments, pipeline
    from kontrast.recipe import Recipe

    experiment = experiments.find(name)
    if judge_paper:
        _judge_paper(experiment, as_json)
        return
    say_loading(name)
    from kontrast.experiments import tables
    from kontrast.experiments.sweep import Sweep

    cells_as_text = _ledger(ledger, only_read)
    sweep = Sweep.of(experiment, preset.value, settings or [], seeds=seeds, out=to, ledger=cells_as_text)
    if dry_run:
        _plan(sweep)
        return
    if only_read:
        if cells_as_text is None and not any(cell.done for cell in sweep.cells):
            print_err(f"no run is finished in {printable(to)}, and there is no ledger in docs/results/ledger")
        summary = sweep.write()
    else:
        runner = _engine(engine, len(sweep.cells), jobs, threads, cpus, gpus, address)
        missing = sweep.missing
        if engine is EngineName.local:  # before the first folder is made; a cluster's machines may have other data
            for cell in missing:
                if isinstance(cell.does, Recipe):
                    cell.does.check_data()
        print_err(f"{name}: {len(sweep.cells)} runs, {len(missing)} to do")
        with handle_signals():
            summary = sweep.run(runner, _Progress(len(missing) + len(sweep.missing_baselines)))
    page = pipeline.write_report([sweep.folder], on_error=print_failure)
    if as_json:
        print(dump(summary))
    else:
        print_out(tables.terminal(summary, show_folders=folders))
        print_path("tables and charts", sweep.folder)
        print_path("report", page)
    if not only_read and sweep.missing:
        raise typer.Exit(1)


def _ledger(folder: Path | None, only_read: bool) -> Ledger | None:
    """The ledger in the folder; without one, for ``--only-read``, that of the checkout, if there is one."""
    from kontrast.experiments.ledger import DEFAULT, Ledger

    if folder is not None and not folder.is_dir():
        raise ValueError(f"--ledger={folder}: must be a folder that exists. kontrast ledger add makes one")
    folder = folder or (DEFAULT if only_read and DEFAULT.is_dir() else None)
    return None if folder is None else Ledger(folder)


def _judge_paper(experiment: Experiment, as_json: bool) -> None:
    """Each claim with its verdict on the paper's own table."""
    from kontrast.experiments import tables
    from kontrast.experiments.judging import judge_paper

    claims = judge_paper(experiment)
    if as_json:
        print(dump({"experiment": experiment.name, "claims": claims}))
        return
    print_out(f"[bold]{escape(experiment.title)}[/] ({escape(experiment.source)})")
    print_out("Our claims, tested on the numbers that the paper prints; each finding says where its error comes from.")
    print_out(tables.claims(claims, nothing="the paper prints no numbers that this claim reads"))


def _engine(
    which: EngineName, cells: int, jobs: int | None, threads: int | None, cpus: float, gpus: float, address: str | None
) -> Engine:
    from kontrast.experiments.engines import engine as make
    from kontrast.experiments.engines.local import default_jobs

    if which is EngineName.ray:
        return make("ray", address=address, cpus=cpus, gpus=gpus)
    return make("local", jobs=default_jobs(cells, threads) if jobs is None else jobs, threads=threads)


def _plan(sweep: Sweep) -> None:
    """Print every cell with its folder, what the preset changes, and how long it will take."""
    from kontrast.experiments.plan import estimate

    preset = sweep.experiment.presets[sweep.preset]
    print_out(f"[bold]{escape(sweep.experiment.title)}[/] ({escape(sweep.experiment.source)})")
    print_out(escape(preset.about))
    missing = sweep.missing
    for cell in sweep.cells:
        trouble = cell.trouble
        status = (cell.state.status or "missing") if trouble is None else "unusable"
        if status != "done" and cell not in missing:
            status = "in ledger"
        why = "" if trouble is None else f": {escape(trouble)}"
        print_out(f"{status:<11} {escape(cell.name)}  {escape(cell.path.name)}{why}")
    time_needed = estimate(missing)
    count = f"{len(sweep.cells)} runs, {len(missing)} to do"
    if time_needed.seconds is None:
        print_out(f"{count}; no estimate: {escape(time_needed.why)}")
    else:
        training = f"about {duration(time_needed.seconds)} of training, measured on a few steps with all cores"
        print_out(f"{count}; {training}; evaluation comes on top")


class _Progress:
    """Print a line when something happens to a cell."""

    def __init__(self, count: int) -> None:
        self.count, self.done, self.start = count, 0, time.monotonic()

    def __call__(self, event: Event) -> None:
        if event.what == "already done":
            return
        if event.what in ("done", "failed"):
            self.done += 1
        left = (time.monotonic() - self.start) / max(self.done, 1) * (self.count - self.done)
        words: dict[str, Any] = {
            "done": f"done in {duration(event.seconds)}; about {duration(left)} left",
            "failed": f"failed: {event.error}",
            "waits": "another process is running it; waiting",
            "again": f"its process died; trying again: {event.error}",
        }
        text = words.get(event.what, event.what)
        print_err(f"[{self.done}/{self.count}] {event.cell.name}: {text}", markup=False)


def duration(seconds: float) -> str:
    """Seconds as text.

    >>> duration(40), duration(600), duration(9000), duration(500000)
    ('40 s', '10 min', '2.5 h', '5.8 days')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
