"""Named sets from a server: fetched once, held to their checksums, unpacked inside the root."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torchvision.datasets

from kontrast.data.loading import load
from kontrast.data.sets import fashion_mnist, tiny_imagenet
from tests.data.pictures import write
from tests.data.serving import Server, serving
from tests.data.sets import test_cifar10, test_fashion_mnist, test_tiny_imagenet
from tests.data.sets.unreachable import unplug


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def publish_cifar(server: Server, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A small CIFAR-10 on the server, with its own checksums in torchvision's lists."""
    batches = test_cifar10.official(folder) / "cifar-10-batches-py"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(batches, "cifar-10-batches-py")
    server.pages["/cifar.tar.gz"] = buffer.getvalue()
    published = torchvision.datasets.CIFAR10

    def sums(names: list[list[str]]) -> list[list[str]]:
        return [[name, md5((batches / name).read_bytes())] for name, _ in names]

    monkeypatch.setattr(published, "train_list", sums(published.train_list))
    monkeypatch.setattr(published, "test_list", sums(published.test_list))
    meta = {**published.meta, "md5": md5((batches / "batches.meta").read_bytes())}
    monkeypatch.setattr(published, "meta", meta)
    monkeypatch.setattr(published, "url", f"{server.url}/cifar.tar.gz")
    monkeypatch.setattr(published, "tgz_md5", md5(buffer.getvalue()))


def test_cifar10_is_fetched(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    publish_cifar(server, monkeypatch, tmp_path / "publisher")
    data = load("cifar10", root=tmp_path / "root")
    assert (len(data.train), data.class_names) == (20, test_cifar10.NAMES)
    load("cifar10", root=tmp_path / "root")
    assert server.asked == ["/cifar.tar.gz"]
    batch = tmp_path / "root" / "cifar-10-batches-py" / "data_batch_3"
    batch.write_bytes(batch.read_bytes()[:-1] + b"x")
    unplug(monkeypatch)  # the archive is there still, and whole
    assert len(load("cifar10", root=tmp_path / "root").train) == 20, "a damaged file is unpacked anew"


def test_what_a_server_sends_instead_is_never_opened(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    publish_cifar(server, monkeypatch, tmp_path / "publisher")
    server.pages["/cifar.tar.gz"] += b"x"
    with pytest.raises(ValueError, match=r"files of cifar10 could not be downloaded .*not the published file"):
        load("cifar10", root=tmp_path / "root")
    assert not list((tmp_path / "root").iterdir())


def test_a_batch_of_the_right_checksum_still_makes_no_objects(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: Server
) -> None:
    """Should two files of one checksum ever be found: the second lock."""
    publish_cifar(server, monkeypatch, tmp_path / "publisher")
    evil = pickle.dumps({"data": print, "labels": []})
    folder = tmp_path / "publisher" / "cifar-10-batches-py"
    (folder / "test_batch").write_bytes(evil)
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "test_list", [["test_batch", md5(evil)]])
    with pytest.raises(ValueError, match=r"it names builtins\.print"):
        load("cifar10", root=tmp_path / "publisher")


def test_svhn_is_fetched(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    listed = {}
    for split in ("train", "test"):
        buffer = io.BytesIO()
        scipy.io.savemat(buffer, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[10], [1]])})
        server.pages[f"/{split}.mat"] = buffer.getvalue()
        listed[split] = [f"{server.url}/{split}.mat", f"{split}_32x32.mat", md5(buffer.getvalue())]
    monkeypatch.setattr(torchvision.datasets.SVHN, "split_list", listed)
    assert len(load("svhn", root=tmp_path / "new").train) == 2
    assert server.asked == ["/train.mat", "/test.mat"]


def test_stl10_is_fetched(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    published, lists = torchvision.datasets.STL10, {"train_list": [], "test_list": []}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for key, name, content in (
            ("train_list", "train_X.bin", bytes(2 * 27648)),
            ("train_list", "train_y.bin", b"\1\2"),
            ("train_list", "unlabeled_X.bin", bytes(27648)),
            ("test_list", "test_X.bin", bytes(27648)),
            ("test_list", "test_y.bin", b"\1"),
            ("", "class_names.txt", b"a\nb"),
        ):
            info = tarfile.TarInfo(f"stl10_binary/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
            if key:
                lists[key].append([name, md5(content)])
    server.pages["/stl.tgz"] = buffer.getvalue()
    for key, value in {**lists, "url": f"{server.url}/stl.tgz", "tgz_md5": md5(buffer.getvalue())}.items():
        monkeypatch.setattr(published, key, value)
    data = load("stl10", root=tmp_path)
    assert repr(data).startswith("DataSet 'stl10': 2 images (3, 96, 96), 1 for testing, 1 unlabelled")


def test_fashion_mnist_is_fetched(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "debian")
    files = {
        path.name: path.read_bytes() for path in sorted(test_fashion_mnist.official(tmp_path / "publisher").iterdir())
    }
    server.pages = {f"/{name}": content for name, content in files.items()}
    published = torchvision.datasets.FashionMNIST
    monkeypatch.setattr(published, "mirrors", [f"{server.url}/"])
    monkeypatch.setattr(published, "resources", [(name, md5(content)) for name, content in files.items()])
    assert len(load("fashion-mnist", root=tmp_path / "root").train) == 6
    server.pages["/t10k-labels-idx1-ubyte.gz"] = gzip.compress(b"another")
    with pytest.raises(ValueError, match=r"not the published file.*missing: .*t10k-labels-idx1-ubyte.gz"):
        load("fashion-mnist", root=tmp_path / "second")


def test_tiny_imagenet_is_fetched(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = test_tiny_imagenet.official(tmp_path / "publisher")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for path in sorted(source.rglob("*")):
            made.write(path, path.relative_to(source))
    server.pages["/tiny.zip"] = buffer.getvalue()
    monkeypatch.setattr(tiny_imagenet, "URL", f"{server.url}/tiny.zip")
    monkeypatch.setattr(tiny_imagenet, "MD5", md5(buffer.getvalue()))
    assert len(load("tiny-imagenet", root=tmp_path / "root").train) == 6
    load("tiny-imagenet", root=tmp_path / "root")
    assert server.asked == ["/tiny.zip"]


def test_an_archive_of_the_right_checksum_stays_in_its_folder(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("../escaped.txt", "out")
    server.pages["/tiny.zip"] = buffer.getvalue()
    monkeypatch.setattr(tiny_imagenet, "URL", f"{server.url}/tiny.zip")
    monkeypatch.setattr(tiny_imagenet, "MD5", md5(buffer.getvalue()))
    with pytest.raises(ValueError, match="leads out of the folder"):
        load("tiny-imagenet", root=tmp_path / "root")
    assert not (tmp_path / "escaped.txt").exists()


def test_without_permission_nothing_is_fetched(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tiny_imagenet, "URL", f"{server.url}/tiny.zip")
    write(tmp_path / "tiny-imagenet-200" / "train" / "n1" / "images" / "a.png")
    with pytest.raises(ValueError, match=r"are not there \(download=False\)"):
        load("tiny-imagenet", root=tmp_path, download=False)
    assert not server.asked
