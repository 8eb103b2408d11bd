"""How much memory is free, that freed memory is kept or given back, and what photos of 224 pixels need."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast.train.memory import free_memory, keep_freed_memory, release_freed_memory

FAULTS = """
import resource, sys
import torch
if sys.argv[1] == "keep":
    from kontrast.train.memory import keep_freed_memory
    assert keep_freed_memory()
torch.set_num_threads(1)
for _ in range(3):
    torch.ones(16_000_000).sum()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.ones(16_000_000).sum()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not keep_freed_memory(), reason="the allocator is not glibc's")
def test_a_block_of_64_mb_is_not_faulted_in_again() -> None:
    """Ten times 64 MB are 156,250 pages of 4 KB (or 320 of 2 MB): by default faulted in each time, kept never."""
    assert faults("keep") * 20 < faults("default")


RELEASED = """
import torch
from kontrast.train.memory import keep_freed_memory, release_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4 // 1024

keep_freed_memory()
torch.set_num_threads(1)
before = resident()
blocks = [torch.ones(1_000_000) for _ in range(100)]
last = torch.ones(1000)  # on top of them: without trimming inside the heap they cannot go
blocks.clear()
kept = resident()
release_freed_memory()
print(kept - before, resident() - before)
"""


@pytest.mark.skipif(not release_freed_memory(), reason="the allocator is not glibc's")
def test_kept_memory_is_given_back_when_asked() -> None:
    done = subprocess.run([sys.executable, "-c", RELEASED], capture_output=True, text=True, check=True)
    kept, after = map(int, done.stdout.split())
    assert kept > 300  # of 400 MB
    assert after < 100


CPU, MB = torch.device("cpu"), 2**20


def system(root: Path, available: int, group: str, files: dict[str, str]) -> Path:
    """The files of a system with so many bytes available, a process in this control group, and the group's files."""
    for name, text in {
        "proc/meminfo": f"MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: {available // 1024} kB\n",
        "proc/self/cgroup": group,
        **{f"sys/fs/cgroup/{name}": text for name, text in files.items()},
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def version_2(limit: str, used: int, cached: int = 0) -> dict[str, str]:
    return {"memory.max": limit, "memory.current": str(used), "memory.stat": f"anon 5\ninactive_file {cached}\n"}


def under(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def test_free_memory_is_what_the_system_has_available(tmp_path: Path) -> None:
    assert free_memory(CPU, root=system(tmp_path, 700 * MB, "0::/\n", {})) == 700 * MB
    real = free_memory(CPU)
    assert real is not None
    assert real > 0


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (under("job/step", version_2(str(300 * MB), 120 * MB, 20 * MB)), 200),
        (under("job/step", version_2("max", 120 * MB)), 700),
        (under("job/step", version_2("max", 1)) | under("job", version_2(str(150 * MB), 50 * MB)), 100),  # one above
        (version_2(str(300 * MB), 100 * MB), 200),  # inside a container its own group is the top
        (under("job/step", version_2(str(100 * MB), 120 * MB)), 0),  # over the limit already
        (under("job/step", version_2("damaged", 0)), 700),
    ],
)
def test_a_control_group_limits_it(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert free_memory(CPU, root=system(tmp_path, 700 * MB, "0::/job/step\n", files)) == expected * MB


def test_control_groups_of_version_1(tmp_path: Path) -> None:
    files = {
        "memory/job/memory.limit_in_bytes": str(500 * MB),
        "memory/job/memory.usage_in_bytes": str(300 * MB),
        "memory/job/memory.stat": f"cache 1\ntotal_inactive_file {100 * MB}\n",
        "memory/memory.limit_in_bytes": "9223372036854771712",  # none
        "memory/memory.usage_in_bytes": str(400 * MB),
        "memory/memory.stat": "",
    }
    root = system(tmp_path, 700 * MB, "5:devices:/other\n4:memory:/job\n0::/\n", files)
    assert free_memory(CPU, root=root) == 300 * MB


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of the process is read there")
def test_ulimit_limits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (now + 64 * MB, now + 64 * MB))
    found = free_memory(CPU)
    assert found is not None
    assert found <= 64 * MB


def test_a_gpu_is_asked_and_what_torch_holds_unused_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 5000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 300)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 100)
    assert free_memory(torch.device("cuda", 0)) == 1200


PEAK = """
import re, sys
import torch
torch.set_num_threads(1)
import kontrast
from kontrast.train import subject_of
from kontrast.train.embedding import embed
from kontrast.evaluate import evaluate
what, photos, out = sys.argv[1:]
if what == "train":
    length = {"train.batch_size": 8, "train.steps": 2, "evaluate.protocols": ["knn20"]}
    kontrast.run("supcon-fashion-mini", data=photos, encoder="timm/tf_efficientnet_lite0", augment=["weak", "weak"],
        **length, run={"out": out, "progress": False})
elif what == "embed":
    print(embed(out, photos, out + "/features.npy"))
else:
    print(evaluate(subject_of(out), "knn20"))
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])  # ru_maxrss has the parent's peak in it
"""


@pytest.mark.slow  # its representatives: tests/evaluate/test_activations.py::test_the_peak_is_held_down, and above
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_photos_of_224_pixels_fit_a_laptop(tmp_path: Path) -> None:
    """120 + 60 photos of several sizes: a run of steps of 8 images below 2.5 GB, evaluation and embed below 1.5 GB.

    Resident memory of whole processes; 0.8 to 0.9 GB of it are the libraries. By 512 rows at once it was 4 GB.
    """
    pytest.importorskip("timm")
    draw, photos = np.random.default_rng(0), tmp_path / "photos"
    for i in range(180):
        folder = photos / ("train" if i < 120 else "test") / f"class{i % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 256, (240 + 13 * (i % 9), 260 + 17 * (i % 7), 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.jpg")

    def peak(what: str, out: Path) -> float:
        command = [sys.executable, "-c", PEAK, what, str(photos), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split()[-1]) / 2**20

    assert peak("train", tmp_path / "runs") < 2.5
    (run,) = (tmp_path / "runs").iterdir()
    assert peak("embed", run) < 1.5
    assert peak("evaluate", run) < 1.5
