"""Weights that libraries publish for their encoders: what they are called, where they are, and what images they take.

`Published` is one entry of such a list (timm's configurations, torchvision's enumerations). An encoder says which are
its own (`kontrast.models.Encoder.published`), and reads them through its library, which keeps them in its own cache.
"""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

from torch import nn

from kontrast.models.preprocessing import Preprocessing
from kontrast.registry import one_line

SECONDS = 5  # until a host counts as out of reach


@dataclass(frozen=True)
class Published:
    """Weights that can be had by name.

    Attributes:
        name: What they are called, with their library's name of the network.
        address: Where they are published.
        place: The file in which the library keeps them, or the folder, if it names the file itself.
        preprocessing: What their images went through.
        read: Gives the tensors for a network; the library downloads them if its cache lacks them.
        is_cached: Whether the file is there already.
    """

    name: str
    address: str
    place: str
    preprocessing: Preprocessing
    read: Callable[[nn.Module], Mapping[str, Any]]
    is_cached: Callable[[], bool]

    def tensors(self, network: nn.Module) -> Mapping[str, Any]:
        """The tensors by the library's names.

        Args:
            network: The network that they are for.

        Raises:
            ValueError: They are not in the cache, and cannot be downloaded.
        """
        try:
            if not self.is_cached() and (reason := out_of_reach(self.address)):
                raise OSError(reason)
            return self.read(network)
        except (OSError, RuntimeError) as error:  # of urllib, of the hub's client, and of a hash that differs
            raise ValueError(
                f"the weights of {self.name} are not in the cache and cannot be downloaded "
                f"({one_line(str(error).strip() or type(error).__name__)[:200]}). Fetch {self.address} where there is "
                f"a network, and use encoder.pretrained=FILE with that file, or put it into the cache: {self.place}"
            ) from error


def out_of_reach(address: str) -> str:
    """Why a host cannot be reached; empty if it can, or if a proxy decides that.

    The hub's client would try for most of a minute.
    """
    parts = urlparse(address)
    if urllib.request.getproxies() or not parts.hostname:
        return ""
    try:
        with socket.create_connection((parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)), SECONDS):
            return ""
    except OSError as error:
        return f"{parts.hostname}: {error.strerror or error}"
