"""Training's images a second beside lightly's loop, the bare encoder and busy processes, and a batch beyond memory.

    python benchmarks/training.py            everything (about fifteen minutes on two cores)
    python benchmarks/training.py --quick    a small form (about three minutes)

SimCLR on 32×32 RGB images in memory, batches of 256, two views each, SGD. "kontrast train" is the whole loop of the
command: augmentation (strong preset), one forward pass for both views, NT-Xent, step, log, checkpoint at the end; with
and without monitors at their default interval (once an epoch). "lightly" is its documented loop with the same encoder:
SimCLRTransform, DataLoader with 2 workers (kept alive between epochs), its projection head, NTXentLoss, a
forward pass for each view. "bare encoder" is forward, backward and step of the same encoder and head on float tensors
that are ready, with a mean of squares for a loss: what no loop can beat. A call is an epoch; the first of each is not
counted, and they take turns. All of them run in one process that keeps freed memory, as `kontrast train` makes it do
(`kontrast.train.memory`), so the peers have that advantage too.

"Training against the bare encoder" has each in a process of its own, with OpenMP's wait policy as the commands set it
(`kontrast.openmp`), in turns of 24 steps, so that a change of the machine's speed meets both alike: the ratio is taken
in every round, and its median and quartiles over the rounds are shown.

"Beside other work" is the whole loop without monitors in a process of its own, two threads, in turns of eight steps
beside no, one and two processes that only compute: once as the commands set OpenMP's wait policy, once as torch has it
by default, once with OMP_WAIT_POLICY=passive. A fair scheduler would leave two threads on two cores three quarters and
a half, or two thirds and a half if it shares among threads alone. Beside processes of other sessions, as other people's
work is, Linux may share among the sessions first (sched_autogroup): a half beside one and a third beside two is all
there is to have. Ratios are taken within a round. How much of the machine other processes had is measured too and
stands below the table: figures from a machine that was not quiet count for little.

"Jobs" are two such processes with one thread each, at the same time, against one with two threads: images a second of
all together.

The large batch is one SupCon step of 6,144 images, 12,288 views, with the small encoder: gradient caching in
micro-batches of 256 beside the whole batch at once, each in a fresh process.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kontrast import methods, models, openmp
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train import Training, make_job, resolve
from kontrast.train.gradients import backward
from kontrast.train.memory import keep_freed_memory
from measure import Sections, in_fresh_process, markdown, number, peak_megabytes, setting, write_page

BATCH, LARGE, MICRO = 256, 6144, 256
OURS, NO_MONITORS, LIGHTLY, BARE = "kontrast train", "kontrast train, no monitors", "lightly", "bare encoder"
Epoch = Callable[[], object]
TURN, LONG = 8, 24  # steps of a turn beside other work, and against the bare encoder
COMMANDS = openmp.wait_policy({})  # as the commands set it
POLICIES: dict[str, dict[str, str]] = {
    "as the commands set it": COMMANDS,
    "torch's default": {},
    "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "PASSIVE"},
}
BUSY = {  # which of four busy processes run; the last two have sessions of their own
    "quiet": (),
    "beside one busy process": (0,),
    "beside two": (0, 1),
    "beside one of another session": (2,),
    "beside two of others": (2, 3),
}


def images(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def ours(folder: Path, encoder: str, n: int, *, monitors: bool) -> Epoch:
    """An epoch of the whole loop, in a folder of its own."""
    np.savez(folder / "images.npz", x_train=images(n), x_test=images(512))
    recipe = resolve(
        Recipe.of(
            {
                "name": f"simclr-{encoder}-{monitors}",
                "data": str(folder / "images.npz"),
                "augment": ["strong", "strong"],
                "encoder": encoder,
                "head": {"name": "tcl-ssl", "hidden": 256, "out": 128},
                "method": "simclr",
                "train": {"epochs": 1, "batch_size": BATCH},
                "run": {"out": str(folder), "progress": False, **({} if monitors else {"monitor_every": 0})},
            }
        )
    )
    place = Run.of(recipe)
    place.begin(recipe)
    training = Training(make_job(recipe, torch.device("cpu")), place)

    def epoch() -> None:
        training.state.step = 0
        training.run()

    return epoch


def network(encoder: str) -> nn.Sequential:
    made = models.encoder(encoder, image_size=32, seed=0)
    return nn.Sequential(made, models.head("tcl-ssl", in_dim=made.feature_dim, hidden=256, out=128, seed=0))


def bare(encoder: str, n: int) -> Epoch:
    model = network(encoder)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    ready = torch.randn(2 * BATCH, 3, 32, 32)

    def epoch() -> None:
        for _ in range(n // BATCH):
            optimiser.zero_grad()
            model(ready).square().mean().backward()
            optimiser.step()

    return epoch


def lightly(encoder: str, n: int) -> Epoch | None:
    if importlib.util.find_spec("lightly") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss_module = importlib.import_module("lightly.loss")
        heads = importlib.import_module("lightly.models.modules.heads")
        transforms = importlib.import_module("lightly.transforms")
    from torchvision.transforms.functional import to_pil_image

    backbone = models.encoder(encoder, image_size=32, seed=0)
    model = nn.Sequential(backbone, heads.SimCLRProjectionHead(backbone.feature_dim, 256, 128))
    transform = transforms.SimCLRTransform(input_size=32, cj_strength=0.5, min_scale=0.2)
    pictures = [to_pil_image(image) for image in images(n)]
    data = _Pictures(pictures, transform)
    loader = torch.utils.data.DataLoader(
        data, batch_size=BATCH, shuffle=True, drop_last=True, num_workers=2, persistent_workers=True
    )
    criterion = loss_module.NTXentLoss(temperature=0.1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def epoch() -> None:
        for (first, second), _ in loader:
            loss = criterion(model(first), model(second))
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()

    return epoch


class _Pictures(torch.utils.data.Dataset[Any]):
    def __init__(self, pictures: list[Any], transform: Callable[[Any], Any]) -> None:
        self.pictures, self.transform = pictures, transform

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.transform(self.pictures[index]), 0


def seconds(epochs: dict[str, Epoch], rounds: int) -> dict[str, float]:
    """Median seconds of an epoch of each, taking turns; the first of each is not counted."""
    for epoch in epochs.values():
        epoch()
    times: dict[str, list[float]] = {name: [] for name in epochs}
    for _ in range(rounds):
        for name, epoch in epochs.items():
            start = time.perf_counter()
            epoch()
            times[name].append(time.perf_counter() - start)
    return {name: median(seen) for name, seen in times.items()}


def speeds(encoder: str, n: int, rounds: int) -> dict[str, float]:
    """Images a second of each loop."""
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("with", "without")]
        for place in places:
            place.mkdir()
        epochs = {
            OURS: ours(places[0], encoder, n, monitors=True),
            NO_MONITORS: ours(places[1], encoder, n, monitors=False),
            LIGHTLY: lightly(encoder, n),
            BARE: bare(encoder, n),
        }
        times = seconds({name: epoch for name, epoch in epochs.items() if epoch is not None}, rounds)
    counted = n // BATCH * BATCH
    return {name: counted / t for name, t in times.items()}


def speed_table(encoder: str, n: int, found: dict[str, float]) -> str:
    rows = [[name, number(value), number(value / found[BARE], 2)] for name, value in found.items()]
    title = f"**SimCLR, {encoder}**: epochs of {n:,} images"
    return f"{title}\n\n" + markdown(["", "images/s", "times the bare encoder"], rows)


@dataclass(frozen=True)
class Spread:
    """A ratio over the rounds: its median and quartiles."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    def __str__(self) -> str:
        if len(self.values) < 2:
            return f"{self.median:.2f}"
        low, _, high = quantiles(self.values, n=4, method="inclusive")
        return f"{self.median:.2f} ({low:.2f} … {high:.2f})"


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Ratios within the rounds.

    >>> str(ratios([2.0, 3.0, 4.0], [1.0, 1.0, 1.0]))
    '3.00 (2.50 … 3.50)'
    """
    return Spread(tuple(a / b for a, b in zip(above, below, strict=True)))


def against_bare(rounds: int, threads: int) -> Spread:
    """Images a second of the whole loop over the bare encoder's."""
    with servers((threads, COMMANDS, LONG, "bare"), (threads, COMMANDS, LONG, "loop")) as (encoder, loop):
        found = [(encoder.turn(), loop.turn()) for _ in range(rounds)]
    return ratios([each[1] for each in found], [each[0] for each in found])


def _timed(epoch: Epoch) -> float:
    start = time.perf_counter()
    epoch()
    return time.perf_counter() - start


class Server:
    """A process that trains a turn whenever it is asked: the whole loop, or the bare encoder."""

    def __init__(self, threads: int, variables: dict[str, str], steps: int = TURN, what: str = "loop") -> None:
        ours = (*openmp.VARIABLES, "OMP_NUM_THREADS")
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", what, str(steps), str(BATCH), "--threads", str(threads)],
            env={**environment, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.images = steps * BATCH

    def ask(self) -> None:
        assert self.process.stdin is not None
        print(file=self.process.stdin, flush=True)

    def answer(self) -> float:
        """Images a second of the turn."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process that trains has ended before it answered; its error stands above")
        return self.images / float(line)

    def turn(self) -> float:
        self.ask()
        return self.answer()


@contextmanager
def servers(*wanted: tuple[Any, ...]) -> Iterator[list[Server]]:
    """Such processes, each of which has trained a turn already."""
    made: list[Server] = []
    try:
        for arguments in wanted:
            made.append(Server(*arguments))
            made[-1].turn()
        yield made
    finally:
        for server in made:
            server.process.kill()
            server.process.communicate()  # waits for its end, and closes both pipes


def serve(what: str, steps: int, batch: int) -> None:
    """Trains a turn for every line of standard input, and prints how many seconds it took."""
    global BATCH
    BATCH = batch
    with tempfile.TemporaryDirectory() as folder:
        n = steps * batch
        epoch = bare("small-resnet", n) if what == "bare" else ours(Path(folder), "small-resnet", n, monitors=False)
        for _ in sys.stdin:
            print(_timed(epoch), flush=True)


@contextmanager
def busy_processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that compute and do nothing else, and two in sessions of their own; all wait to be let go."""
    program = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"  # ends with us
    command = [sys.executable, "-c", program]
    made = [subprocess.Popen(command, start_new_session=own) for own in (False, False, True, True)]
    try:
        for process in made:
            process.send_signal(signal.SIGSTOP)
        yield made
    finally:
        for process in made:
            process.kill()
            process.wait()


class Others:
    """The share of the machine that processes other than ours had, turn by turn; Linux only."""

    def __init__(self, processes: Sequence[subprocess.Popen[Any]]) -> None:
        self.pids = [os.getpid(), *(process.pid for process in processes)]
        self.shares: list[float] = []

    @contextmanager
    def watch(self) -> Iterator[None]:
        start, before = time.perf_counter(), self._seconds()
        yield
        passed, after = time.perf_counter() - start, self._seconds()
        if before is not None and after is not None:
            self.shares.append(max(0.0, after - before) / passed / (os.cpu_count() or 1))

    def _seconds(self) -> float | None:
        """Processor time of everybody but us."""
        whole = Path("/proc/stat")
        if not whole.exists():
            return None
        counts = [int(word) for word in whole.read_text().partition("\n")[0].split()[1:9]]
        used = sum(counts) - counts[3] - counts[4]  # but for idle and waiting for a disk
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used -= int(fields[11]) + int(fields[12])
        return used / os.sysconf("SC_CLK_TCK")

    def __str__(self) -> str:
        if not self.shares:
            return "What other processes did meanwhile is not known on this system."
        return (
            f"Other processes had {100 * median(self.shares):.0f} % of the machine in the median turn, "
            f"{100 * max(self.shares):.0f} % at most."
        )


@dataclass(frozen=True)
class Beside:
    """Images a second by policy and what ran beside, round by round."""

    speeds: dict[tuple[str, str], list[float]]
    others: str

    def of_quiet(self, policy: str, busy: str) -> Spread:
        return ratios(self.speeds[policy, busy], self.speeds[policy, "quiet"])

    def against_default(self, policy: str) -> Spread:
        return ratios(self.speeds[policy, "quiet"], self.speeds["torch's default", "quiet"])


def beside(rounds: int, threads: int) -> Beside:
    found: dict[tuple[str, str], list[float]] = {(policy, busy): [] for policy in POLICIES for busy in BUSY}
    with servers(*((threads, policy) for policy in POLICIES.values())) as made, busy_processes() as processes:
        others = Others([*(server.process for server in made), *processes])
        for _ in range(rounds):
            for busy, which in BUSY.items():
                for policy, server in zip(POLICIES, made, strict=True):
                    for i in which:
                        processes[i].send_signal(signal.SIGCONT)
                    with others.watch():
                        found[policy, busy].append(server.turn())
                    for i in which:
                        processes[i].send_signal(signal.SIGSTOP)
    return Beside(found, str(others))


def beside_table(found: Beside) -> str:
    _, *others = BUSY
    header = ["", "quiet: times torch's default", *(f"{busy}: times quiet" for busy in others)]
    rows = [
        [policy, str(found.against_default(policy)), *(str(found.of_quiet(policy, busy)) for busy in others)]
        for policy in POLICIES
    ]
    title = "**Beside other work, small-resnet**: median of the rounds (quartiles)"
    return f"{title}\n\n{markdown(header, rows)}\n\n{found.others}"


def jobs(rounds: int) -> Spread:
    """Images a second of two processes with a thread each, over those of one with two."""
    both: list[float] = []
    one: list[float] = []
    with servers((2, COMMANDS), (1, COMMANDS), (1, COMMANDS)) as (alone, first, second):
        for _ in range(rounds):
            one.append(alone.turn())
            first.ask()
            second.ask()
            both.append(first.answer() + second.answer())
    return ratios(both, one)


def large_step(pieces: int, count: int) -> Epoch:
    """One SupCon step on ``count`` images, two views each, with gradient caching if there are several pieces."""
    encoder = models.encoder("small-resnet", image_size=32, seed=0)
    head = models.head("tcl", in_dim=encoder.feature_dim, seed=0)
    method = methods.method("supcon", encoder, head)
    optimiser = torch.optim.SGD(method.parameters(), lr=0.1, momentum=0.9, fused=True)
    views = torch.randn(count, 2, 3, 32, 32)
    labels = torch.arange(count) % 10

    def step() -> Tensor:
        loss = backward(method, methods.ViewBatch(views, labels), pieces=pieces)
        optimiser.step()
        return loss

    return step


def large_table(count: int) -> str:
    rows = []
    pieces = -(-count // MICRO)
    for name, parts in ((f"gradient caching, micro-batches of {MICRO}", pieces), ("the whole batch at once", 1)):
        took = in_fresh_process(__file__, ["--large", parts, count, "seconds"])
        megabytes = in_fresh_process(__file__, ["--large", parts, count, "megabytes"])
        rows.append([name, number(took), number(megabytes)])
    title = (
        f"**One SupCon step on {count:,} images ({2 * count:,} views), small-resnet**: peak beyond the views themselves"
    )
    return f"{title}\n\n" + markdown(["", "seconds", "MB"], rows)


def goals(found: dict[str, float], bare_ratio: Spread, busy: Beside) -> str:
    rows: list[list[str]] = []

    def at_least(what: str, wanted: float, measured: float, shown: str) -> None:
        rows.append([what, f"≥ {wanted:g} ×", f"{shown} ×", "yes" if measured >= wanted else "no"])

    if LIGHTLY in found:
        ratio = found[OURS] / found[LIGHTLY]
        at_least(f"{OURS} against {LIGHTLY}", 2.5, ratio, f"{ratio:.2f}")
    at_least(f"{OURS} against {BARE}", 0.9, bare_ratio.median, str(bare_ratio))
    cost = 1 - found[OURS] / found[NO_MONITORS]
    rows.append(["monitors' share of the time", "≤ 3 %", f"{100 * cost:.1f} %", "yes" if cost <= 0.03 else "no"])
    policy = next(iter(POLICIES))
    quiet = busy.against_default(policy)
    at_least("quiet, against torch's default wait policy", 0.97, quiet.median, str(quiet))
    for name, wanted in (("beside one busy process", 0.65), ("beside two", 0.45)):
        ratio_ = busy.of_quiet(policy, name)
        at_least(f"{name}, against quiet", wanted, ratio_.median, str(ratio_))
    return "**Goals, small-resnet**\n\n" + markdown(["", "goal", "measured", "reached"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short epochs, few rounds, no ResNet-18")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/training.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=None, help="of whole epochs; of short turns four times as many")
    parser.add_argument(
        "--serve", nargs=3, metavar=("WHAT", "STEPS", "BATCH"), help="train a turn for every line of standard input"
    )
    parser.add_argument(
        "--large", nargs=3, metavar=("PIECES", "COUNT", "WHAT"), help="print one step's figure and stop"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.serve:
        keep_freed_memory()
        what, steps, batch = arguments.serve
        serve(what, int(steps), int(batch))
        return
    if arguments.large:
        pieces, count, what = arguments.large
        large_step(int(pieces), 64)()  # libraries and threads are there before the count begins
        step = large_step(int(pieces), int(count))
        start = time.perf_counter()
        megabytes = peak_megabytes(step)
        print(time.perf_counter() - start if what == "seconds" else megabytes)
        return
    keep_freed_memory()
    sections = Sections()
    rounds = arguments.rounds or (1 if arguments.quick else 4)
    turns = 4 * rounds
    counts = f"{rounds} rounds of epochs (ResNet-18: 3), {turns} of turns (beside other work: {turns // 2})"
    sections.show(f"{setting()}, batches of {BATCH}, {counts}.")
    n = 2560 if arguments.quick else 10240
    found = speeds("small-resnet", n, rounds)
    sections.show(speed_table("small-resnet", n, found))
    if not arguments.quick:
        sections.show(speed_table("resnet18", 1024, speeds("resnet18", 1024, 3)))
    sections.show(large_table(1024 if arguments.quick else LARGE))
    bare_ratio = against_bare(turns, arguments.threads)
    sections.show(f"**Training against the bare encoder, small-resnet**: {bare_ratio} times as many images a second")
    busy = beside(turns // 2, arguments.threads)  # torch's default takes many times as long there
    sections.show(beside_table(busy))
    done = f"two processes with a thread each do {jobs(turns)} times what one with two threads does"
    sections.show(f"**Jobs, small-resnet**: {done}")
    sections.show(goals(found, bare_ratio, busy))
    if arguments.write:
        write_page("training", __doc__ or "", sections)


if __name__ == "__main__":
    main()
