"""Evaluation: nearest neighbours beside scikit-learn and faiss, and 24 linear heads beside one.

    python benchmarks/evaluation.py            everything (about three minutes)
    python benchmarks/evaluation.py --quick    a small form (well under a minute)

**Nearest neighbours.** 10,000 queries among 60,000 keys of 512 numbers, the k nearest by cosine. Ours is given the rows
as they are and normalises them inside. scikit-learn's brute force is measured on rows that are unit vectors already,
with its Euclidean metric, whose order is the same and which has a path of its own, and for k = 20 with its cosine
metric. faiss-cpu's IndexFlatIP is given unit vectors too, and its index is made beforehand. "product alone" is the
matrix product of all queries and keys, by blocks, without looking for anything: no exact search by cosine can be much
quicker. Times are medians of rounds in which all take turns; what takes longer than 12 s is timed once.

**Heads.** One epoch of linear heads on cached features, ten classes, batch 512, in float32: 24 at once, one alone by
the same code, and one the ordinary way (nn.Linear, cross_entropy, torch.optim.SGD with Nesterov momentum, rows drawn by
a permutation). Medians of interleaved rounds.

**Memory.** How far a process grows while 10,000 queries are searched among 60,000 keys of 2,048 numbers, k = 200,
beside the features themselves.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn

from kontrast.evaluate import nearest, train_heads
from kontrast.evaluate.neighbours import KEYS, QUERIES
from measure import Call, Sections, in_fresh_process, markdown, number, peak_megabytes, setting, write_page

OURS = "kontrast"
HEADS = 24
LONG = 12.0  # seconds


def drawn(rows: int, dim: int, seed: int) -> Tensor:
    """Unlike in real features, no two rows are near: what is passed over early is the same or less."""
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


def in_turns(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Seconds of each call: the median over rounds in which all take turns. What takes long is timed once."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if not times[name] or times[name][0] < LONG:
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: median(seen) for name, seen in times.items()}


def product(query: Tensor, keys: Tensor) -> None:
    """All inner products in blocks like ours, thrown away."""
    out = torch.empty(min(QUERIES, len(query)), KEYS)
    for part in torch.split(keys, KEYS):
        for rows in torch.split(query, QUERIES):
            torch.mm(rows, part.T, out=out[: len(rows), : len(part)])


def searches(queries: int, keys: int, dim: int, k: int) -> dict[str, Call]:
    q, c = drawn(queries, dim, 0), drawn(keys, dim, 1)
    unit_q, unit_c = F.normalize(q).numpy(), F.normalize(c).numpy()
    euclid = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(unit_c)
    calls: dict[str, Call] = {
        OURS: lambda: nearest(q, c, k),
        "product alone": lambda: product(q, c),
        "scikit-learn, unit rows, Euclidean": lambda: euclid.kneighbors(unit_q),
    }
    if k <= 20:
        cosine = NearestNeighbors(n_neighbors=k, algorithm="brute", metric="cosine").fit(c.numpy())
        calls["scikit-learn, cosine"] = lambda: cosine.kneighbors(q.numpy())
    if importlib.util.find_spec("faiss") is not None:
        faiss: Any = importlib.import_module("faiss")
        faiss.omp_set_num_threads(torch.get_num_threads())
        index = faiss.IndexFlatIP(dim)
        index.add(unit_c)
        calls["faiss, unit rows, IndexFlatIP"] = lambda: index.search(unit_q, k)
    return calls


def ordinary(x: Tensor, y: Tensor, batch_size: int) -> None:
    """One head, one epoch, as one would write it."""
    head = nn.Linear(x.shape[1], 10)
    search = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    for rows in torch.split(torch.randperm(len(x)), batch_size):
        search.zero_grad()
        F.cross_entropy(head(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
        search.step()


def heads(rows: int, dim: int) -> dict[str, Call]:
    x, y = drawn(rows, dim, 0), torch.arange(rows) % 10

    def ours(count: int) -> Call:
        rates, decays = [0.1] * count, [1e-4] * count
        return lambda: train_heads(x, y, 10, learning_rates=rates, weight_decays=decays, epochs=1, batch_size=512)

    return {
        f"{OURS}, {HEADS} heads": ours(HEADS),
        f"{OURS}, one head": ours(1),
        "one head, nn.Linear and SGD": lambda: ordinary(x, y, 512),
    }


def table(title: str, times: dict[str, float], unit: str = "s") -> str:
    first = next(iter(times.values()))
    scale = 1e3 if unit == "ms" else 1.0
    rows = [[name, number(scale * t), number(t / first, 2)] for name, t in times.items()]
    return f"**{title}**\n\n" + markdown(["", unit, "times the first"], rows)


def goals(found: dict[int, dict[str, float]], trained: dict[str, dict[str, float]]) -> str:
    rows = []
    for k, times in found.items():
        for name, t in times.items():
            if name not in (OURS, "product alone"):
                ratio = times[OURS] / t
                rows.append([f"k = {k}: against {name}", "≤ 1 ×", f"{ratio:.2f} ×", "yes" if ratio <= 1 else "no"])
    for title, times in trained.items():
        many, *others = times
        for name in others:
            ratio = times[many] / times[name]
            rows.append([f"{title}: against {name}", "≤ 2 ×", f"{ratio:.2f} ×", "yes" if ratio <= 2 else "no"])
    return "**Goals: time against**\n\n" + markdown(["", "goal", "measured", "reached"], rows)


def print_peak(queries: int, keys: int) -> None:
    """The growth of this process, as the last line printed."""
    q, c = drawn(queries, 2048, 0), drawn(keys, 2048, 1)
    nearest(q[:64], c[:4096], 200)  # libraries and threads are there before the count begins
    print(peak_megabytes(lambda: nearest(q, c, 200)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer queries and rows, few rounds")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/evaluation.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--peak", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.peak:
        print_peak(*arguments.peak)
        return
    queries, keys = (1_000, 10_000) if arguments.quick else (10_000, 60_000)
    rounds = arguments.rounds or 3
    sections = Sections()
    sections.show(f"{setting()}, float32.")
    if importlib.util.find_spec("faiss") is None:
        sections.show("Left out because not installed: faiss (pip install faiss-cpu).")
    found = {k: in_turns(searches(queries, keys, 512, k), rounds) for k in (20, 200)}
    for k, times in found.items():
        sections.show(table(f"The {k} nearest: {queries:,} queries, {keys:,} keys of 512", times))
    trained = {}
    for rows, dim in ((10_000, 64),) if arguments.quick else ((10_000, 64), (60_000, 512)):
        title = f"{rows:,} × {dim}"
        trained[title] = in_turns(heads(rows, dim), 5 * rounds)
        sections.show(table(f"Heads, {title}, one epoch", trained[title], "ms"))
    if not arguments.quick:
        peak = in_fresh_process(sys.argv[0], ["--threads", arguments.threads, "--peak", queries, keys])
        size = 4 * 2048 * (queries + keys) / 2**20
        sections.show(f"**Memory**: {number(peak)} MB beside {size:,.0f} MB of features.")
    sections.show(goals(found, trained))
    if arguments.write:
        write_page("evaluation", __doc__, sections)


if __name__ == "__main__":
    main()
