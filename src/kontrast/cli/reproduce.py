"""``kontrast reproduce``: a table or figure of a paper, planned, run, and held against the paper."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from kontrast.cli._completion import complete_experiment, complete_setting
from kontrast.cli._console import err, named, out, say_loading
from kontrast.cli._status import running, tell_failure
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.experiments.engines import Engine, Told
    from kontrast.experiments.experiment import Experiment
    from kontrast.experiments.ledger import Ledger
    from kontrast.experiments.sweep import Sweep


class Scale(StrEnum):
    """How large."""

    paper = "paper"
    cpu = "cpu"
    smoke = "smoke"


class Who(StrEnum):
    """Who runs the cells."""

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
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many; the preset's own number if left out.")] = None,
    engine: Annotated[Who, typer.Option("--engine", help="Processes here, or a Ray cluster.")] = Who.local,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", help="Runs at a time (local), which share the cores; on a CPU one a core if left out."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Of each run (local); OMP_NUM_THREADS, or its part of the cores.")
    ] = None,
    cpus: Annotated[float, typer.Option("--cpus", help="CPUs that each run needs (ray).")] = 1.0,
    gpus: Annotated[float, typer.Option("--gpus", help="GPUs that each run needs (ray).")] = 0.0,
    address: Annotated[
        str | None, typer.Option("--address", help="A running Ray cluster; one is started here if left out.")
    ] = None,
    to: Annotated[Path, typer.Option("--out", help="The folder that run folders and tables lie in.")] = Path("runs"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan with an estimate of the time.")] = False,
    only_read: Annotated[
        bool, typer.Option("--only-read", help="Make the tables of what is done, here or in the ledger; run nothing.")
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            help="Cells kept as text: those with the same recipe are not run again. "
            "With --only-read docs/results/ledger, if it is there.",
        ),
    ] = None,
    judge_paper: Annotated[
        bool,
        typer.Option("--judge-paper", help="Put the paper's own printed numbers to the claims; run nothing."),
    ] = False,
    folders: Annotated[bool, typer.Option("--folders", help="List the run folders of every cell too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print result.json instead of tables.")] = False,
) -> None:
    """Run an experiment of a paper, or what is left of it, and show the paper's values, ours, and which claims hold."""
    from kontrast import experiments, pipeline, vocabulary
    from kontrast.recipe import Recipe

    found = experiments.find(name)
    if judge_paper:
        _judge_paper(found, as_json)
        return
    say_loading(name)
    from kontrast.experiments import tables
    from kontrast.experiments.sweep import Sweep

    kept = _ledger(ledger, only_read)
    sweep = Sweep.of(found, preset.value, settings or [], seeds=seeds, out=to, ledger=kept)
    if dry_run:
        _plan(sweep)
        return
    if only_read:
        if kept is None and not any(cell.done for cell in sweep.cells):
            err.print(f"no run is done in {named(to)}, and there is no ledger in docs/results/ledger", highlight=False)
        summary = sweep.write()
    else:
        chosen = _engine(engine, len(sweep.cells), jobs, threads, cpus, gpus, address)
        missing = sweep.missing
        if engine is Who.local:  # before the first folder is made; a cluster's machines may have other data
            for cell in missing:
                if isinstance(cell.does, Recipe):
                    vocabulary.check_data(cell.does)
        err.print(f"{name}: {len(sweep.cells)} runs, {len(missing)} to do", highlight=False)
        with running():
            summary = sweep.run(chosen, _Progress(len(missing) + len(sweep.missing_baselines)))
    page = pipeline.write_report([sweep.folder], failed=tell_failure)
    if as_json:
        print(dump(summary))
    else:
        out.print(tables.terminal(summary, show_folders=folders))
        out.print(f"tables and charts: {named(sweep.folder)}", highlight=False, soft_wrap=True)
        if page is not None:
            out.print(f"report: {named(page)}", highlight=False, soft_wrap=True)
    if not only_read and sweep.missing:
        raise typer.Exit(1)


def _ledger(given: Path | None, only_read: bool) -> Ledger | None:
    """The ledger that is asked for; for ``--only-read`` that of the checkout, if there is one."""
    from kontrast.experiments.ledger import DEFAULT, Ledger

    if given is not None and not given.is_dir():
        raise ValueError(f"--ledger={given}: there is no such folder. kontrast ledger add makes one")
    chosen = given or (DEFAULT if only_read and DEFAULT.is_dir() else None)
    return None if chosen is None else Ledger(chosen)


def _judge_paper(experiment: Experiment, as_json: bool) -> None:
    """Each claim with its verdict on the paper's own table."""
    from kontrast.experiments import tables
    from kontrast.experiments.judging import judge_paper

    found = judge_paper(experiment)
    if as_json:
        print(dump({"experiment": experiment.name, "claims": found}))
        return
    out.print(f"[bold]{escape(experiment.title)}[/] ({escape(experiment.source)})", highlight=False)
    out.print("Our claims, tested on the numbers that the paper prints; each finding says where its error comes from.")
    out.print(tables.claims(found, nothing="the paper prints no numbers that this claim reads"))


def _engine(
    which: Who, cells: int, jobs: int | None, threads: int | None, cpus: float, gpus: float, address: str | None
) -> Engine:
    from kontrast.experiments.engines import engine as make
    from kontrast.experiments.engines.local import default_jobs

    if which is Who.ray:
        return make("ray", address=address, cpus=cpus, gpus=gpus)
    return make("local", jobs=default_jobs(cells, threads) if jobs is None else jobs, threads=threads)


def _plan(sweep: Sweep) -> None:
    """Every cell with its folder, what the preset changes, and how long it will take."""
    from kontrast.experiments.estimate import estimate

    chosen = sweep.experiment.presets[sweep.preset]
    out.print(f"[bold]{escape(sweep.experiment.title)}[/] ({escape(sweep.experiment.source)})", highlight=False)
    out.print(escape(chosen.about), highlight=False)
    missing = sweep.missing
    for cell in sweep.cells:
        trouble = cell.trouble
        status = cell.state.get("status", "missing") if trouble is None else "unusable"
        if status != "done" and cell not in missing:
            status = "in ledger"
        why = "" if trouble is None else f": {escape(trouble)}"
        out.print(f"{status:<11} {escape(cell.name)}  {escape(cell.path.name)}{why}", highlight=False, soft_wrap=True)
    found = estimate(missing)
    said = f"{len(sweep.cells)} runs, {len(missing)} to do"
    if found.seconds is None:
        out.print(f"{said}; no estimate: {escape(found.why)}", highlight=False, soft_wrap=True)
    else:
        time_ = f"about {duration(found.seconds)} of training, measured on a few steps with all cores"
        out.print(f"{said}; {time_}; evaluation comes on top", highlight=False, soft_wrap=True)


class _Progress:
    """A line for whatever happens to a cell."""

    def __init__(self, count: int) -> None:
        self.count, self.done, self.began = count, 0, time.monotonic()

    def __call__(self, told: Told) -> None:
        if told.what == "already done":
            return
        if told.what in ("done", "failed"):
            self.done += 1
        left = (time.monotonic() - self.began) / max(self.done, 1) * (self.count - self.done)
        words: dict[str, Any] = {
            "done": f"done in {duration(told.seconds)}; about {duration(left)} left",
            "failed": f"failed: {told.error}",
            "waits": "another process is at it; waits",
            "again": f"its process died, and it is tried again: {told.error}",
        }
        text = words.get(told.what, told.what)
        err.print(f"[{self.done}/{self.count}] {told.cell.name}: {text}", highlight=False, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """In words.

    >>> duration(40), duration(600), duration(9000), duration(500000)
    ('40 s', '10 min', '2.5 h', '5.8 days')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
