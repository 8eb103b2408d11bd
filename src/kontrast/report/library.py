"""The charts' library: Vega, Vega-Lite and Vega-Embed as one script, taken out of vl-convert.

Bundling takes seconds, so it is done once and kept in the user's cache folder (XDG_CACHE_HOME, or ~/.cache).
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from kontrast.files import read_regular, write_atomically


@functools.cache
def library() -> str:
    """The script; it sets ``vegaEmbed``, ``vega`` and ``vegaLite`` in the page."""
    converter = vl_convert()
    root = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "kontrast"
    kept = folder / f"vega-{converter.get_vega_version()}-{version()}-{converter.__version__}.js"
    try:
        return read_regular(kept).decode()
    except (OSError, ValueError):
        made = str(converter.javascript_bundle(vl_version=version()))
    if "</script" in made.lower():
        raise ValueError("the charts' library cannot stand inside a page: it contains </script")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, made.encode())
    except OSError:
        pass  # a home that cannot be written to costs seconds a page, nothing more
    return made


def version() -> str:
    """The newest Vega-Lite there is."""
    return str(vl_convert().get_vegalite_versions()[-1])


def vl_convert() -> Any:
    """The package that draws and bundles."""
    try:
        import vl_convert as found
    except ImportError as error:
        raise ImportError("a report needs a package: pip install vl-convert-python") from error
    return found
