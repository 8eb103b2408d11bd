"""Time and peak memory of the measures of geometry beside the way they are usually written, and beside their limit.

    python benchmarks/geometry.py            the whole table (about ten minutes on two cores)
    python benchmarks/geometry.py --quick    a small form (under a minute)

The limit of a measure over all pairs is the plain product X·Xᵀ (half of it where pairs are unordered: "half product"
is made in blocks that are used again). "usual" is what one finds in notebooks: `torch.pdist` for uniformity, the whole
similarity matrix with a softmax, a `topk` or class masks for the others, `svdvals` for the spectrum. Features are
float32, D = 512, labels of 100 classes; standard errors are included where a measure has them.

Times are medians of rounds in which all calls of one size take turns; a turn is three calls in a row, of which the
fastest counts (one call where it takes over two seconds). Memory is the rise of the process's peak during one call,
each in a fresh process. The usual ways are left out where N² numbers do not fit.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

from kontrast import geometry
from measure import (
    Call,
    Sections,
    in_fresh_process,
    markdown,
    milliseconds,
    number,
    print_peak,
    setting,
    write_page,
)

DIM, CLASSES, TAU, LARGE = 512, 100, 0.1, 60000
OURS = "kontrast "


def data(n: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, DIM, generator=generator), torch.arange(n) % min(CLASSES, max(2, n // 4))


def half_product(x: Tensor, side: int = 2048) -> None:
    buffer = torch.empty(side, side)
    for i in range(0, len(x), side):
        for j in range(i, len(x), side):
            rows, columns = x[i : i + side], x[j : j + side]
            torch.mm(rows, columns.T, out=buffer[: len(rows), : len(columns)])


def product(x: Tensor, height: int = 200) -> None:
    buffer = torch.empty(height, len(x))
    for i in range(0, len(x), height):
        torch.mm(x[i : i + height], x.T, out=buffer[: len(x[i : i + height])])


def similarities(x: Tensor) -> Tensor:
    z = torch.nn.functional.normalize(x, dim=1)
    return (z @ z.T).fill_diagonal_(-torch.inf)


def usual_uniformity(x: Tensor) -> Tensor:
    return torch.pdist(torch.nn.functional.normalize(x, dim=1)).pow(2).mul(-2).exp().mean().log()


def usual_entropy(x: Tensor) -> Tensor:
    r = (similarities(x) / TAU).softmax(1)
    entropy: Tensor = torch.special.entr(r).sum(1)
    return entropy


def usual_response(x: Tensor, labels: Tensor) -> Tensor:
    s = similarities(x)
    same = labels[:, None] == labels
    same.fill_diagonal_(False)
    e = (s / TAU).exp()
    d = e.sum(1)
    hardest = s.masked_fill(~same, torch.inf).amin(1)
    p: Tensor = (hardest / TAU).exp() / d
    return (same.sum(1).reciprocal() - p).abs()


def usual_tolerance(x: Tensor, labels: Tensor) -> Tensor:
    s = similarities(x)
    same = labels[:, None] == labels
    same.fill_diagonal_(False)
    return s[same].mean()


def calls(n: int) -> dict[str, Call]:
    x, labels = data(n)
    found: dict[str, Call] = {
        "half product": lambda: half_product(x),
        "product": lambda: product(x),
        OURS + "uniformity": lambda: geometry.uniformity(x, with_error=True),
        OURS + "penalty entropy": lambda: geometry.penalty_entropy(x, x, temperature=TAU),
        OURS + "local separation": lambda: geometry.local_separation(x, x),
        OURS + "gradient magnitudes": lambda: geometry.gradient_magnitudes(x, x, temperature=TAU),
        OURS + "gradient response": lambda: geometry.gradient_response(x, labels, temperature=TAU, k1=5e3, k2=1.0),
        OURS + "tolerance": lambda: geometry.tolerance(x, labels, with_error=True),
        OURS + "simplex": lambda: geometry.simplex(x, labels, with_error=True),
        OURS + "neural collapse": lambda: geometry.neural_collapse(x, labels, with_error=True),
        OURS + "spectrum": lambda: geometry.spectrum(x, with_error=True),
    }
    if n <= 8192:
        found |= {
            "usual uniformity": lambda: usual_uniformity(x),
            "usual penalty entropy": lambda: usual_entropy(x),
            "usual local separation": lambda: similarities(x).topk(10, dim=1),
            "usual gradient response": lambda: usual_response(x, labels),
            "usual tolerance": lambda: usual_tolerance(x, labels),
            "usual spectrum": lambda: torch.linalg.svdvals(x),
        }
    return found


TABLES = {"all": calls}


def table(times: dict[int, dict[str, float]]) -> str:
    def cell(at: dict[str, float], name: str) -> str:
        if name not in at:
            return "–"
        limit = "half product" if "uniformity" in name or name == "half product" else "product"
        return f"{number(at[name])} ({number(at[name] / at[limit], 2)})"

    names = list(dict.fromkeys(name for at in times.values() for name in at))
    cells = [[name, *(cell(at, name) for at in times.values())] for name in names]
    title = "**Time**: ms (times “product”, uniformity times “half product”)"
    return f"{title}\n\n" + markdown(["", *(f"N = {n:,}" for n in times)], cells)


def memory(sizes: list[int]) -> str:
    names = [name for name in calls(256) if "product" not in name]

    def peak(name: str, n: int) -> str:
        missing = n > 8192 and not name.startswith(OURS)
        return number(None if missing else in_fresh_process(__file__, ["--peak", "all", name, n]))

    cells = [[name, *(peak(name, n) for n in sizes)] for name in names]
    return "**Peak memory**: MB that one call adds\n\n" + markdown(["", *(f"N = {n:,}" for n in sizes)], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/geometry.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak", nargs=3, metavar=("TABLE", "CALL", "N"), help="print one call's peak memory and stop")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.peak:
        print_peak(TABLES, *arguments.peak)
        return
    sections = Sections()
    sections.show(f"{setting()}, D = {DIM}, {CLASSES} classes, float32.")
    sizes = [1024, 2048] if arguments.quick else [2048, 8192]
    times = {n: milliseconds(calls(n), rounds=arguments.rounds) for n in sizes}
    if not arguments.quick:
        times[LARGE] = milliseconds(calls(LARGE), rounds=1)
    sections.show(table(times))
    sections.show(memory([2048] if arguments.quick else [8192, LARGE]))
    if arguments.write:
        write_page("geometry", __doc__, sections)


if __name__ == "__main__":
    main()
