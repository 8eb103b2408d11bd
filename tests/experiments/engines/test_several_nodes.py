"""The command of docs/experiments/clusters.md for two machines, run for real: two launchers, one process each."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kontrast.pipeline import run_recipe
from kontrast.runs import Run
from kontrast.train import checkpoint
from tests.experiments.engines.tasks import ROOT
from tests.train.small import recipe

PAGE = ROOT / "docs" / "experiments" / "clusters.md"
STEPS = {"train.epochs": None, "train.steps": 8}

# Two machines, as far as the network goes: each has a namespace and a name of its own, and they are joined by a pair of
# virtual interfaces. $1 and $2 are what they call, $3 is their /etc/hosts.
MACHINES = """
printf '127.0.0.1 localhost\\n10.77.0.1 left\\n10.77.0.2 right\\n' > $3
mount --bind $3 /etc/hosts
unshare --net --uts sleep 300 & other=$!
trap 'kill $other' EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add left type veth peer name right netns $other
at_other="nsenter --target $other --net --uts"
echo left > /proc/sys/kernel/hostname
ip link set lo up; ip addr add 10.77.0.1/24 dev left; ip link set left up
$at_other sh -c 'echo right > /proc/sys/kernel/hostname'
$at_other sh -c 'ip link set lo up; ip addr add 10.77.0.2/24 dev right; ip link set right up'
$at_other $2 & second=$!
$1
wait $second
"""
OWN = ["unshare", "--map-root-user", "--net", "--uts", "--mount"]


def launch(endpoint: str, path: Path, out: Path, *more: str) -> str:
    """The page's command, with this endpoint, recipe and folder."""
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith("torchrun --nnodes 2")]
    given = {
        "host:29400": endpoint,
        "supcon-fashion-mini": str(path),
        "/shared/runs": str(out),
        "torchrun": shlex.join([sys.executable, "-m", "torch.distributed.run", *more]),
    }
    words = [given.get(word, word) for word in shlex.split(line)]
    assert set(given.values()) <= set(words)
    return " ".join(words)


def on_loopback(path: Path, out: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{probe.getsockname()[1]}"
    command = shlex.split(launch(endpoint, path, out, "--local-addr", "127.0.0.1"))
    nodes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for node in nodes:
            _, err = node.communicate(timeout=120)
            assert node.returncode == 0, err
    finally:
        for node in nodes:
            node.kill()


def in_namespaces(path: Path, out: Path) -> None:
    for tool in ("unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"two network namespaces need the command {tool}")
    if subprocess.run([*OWN, "true"], capture_output=True).returncode:
        pytest.skip("this user may not make network namespaces here")
    command = launch("left:29400", path, out)
    ask = [*OWN, "bash", "-e", "-c", MACHINES, "machines", command, command, str(path.parent / "hosts")]
    done = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # torchrun: a command of README; ranks as one: tests/train/test_running.py
@pytest.mark.parametrize("nodes", [on_loopback, in_namespaces])
def test_two_nodes_are_as_one_process(tmp_path: Path, nodes: object) -> None:
    """The same parameters after 8 steps on the same global batches, to float32's rounding in sums of 32 rows."""
    made = recipe("supcon", tmp_path / "one", **STEPS)
    path = tmp_path / "recipe.yaml"
    path.write_text(made.to_yaml())
    nodes(path, tmp_path / "two")  # type: ignore[operator]
    one = run_recipe(made)
    two = tmp_path / "two" / one.path.name
    assert Run(two).status == "done"
    assert Run(two).state.machine["processes"] == 2
    states = [checkpoint.load(Run(p).last_checkpoint)["method"] for p in (one.path, two)]
    for name, tensor in states[0].items():
        # As for two processes of one machine: sums in another order, eight steps long.
        torch.testing.assert_close(states[1][name], tensor, rtol=2e-4, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}")
    losses = [[line["loss"] for line in Run(p).metrics() if "loss" in line] for p in (one.path, two)]
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=1e-5, atol=1e-5)
