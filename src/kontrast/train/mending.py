"""A finished run whose files are no longer what it wrote: they are made anew from its last checkpoint.

run.json has their digests. A file that has changed since, or is gone, is not believed: asked for the run again, it is
evaluated, analysed and exported once more, and the log is put back, with the same numbers as before.
"""

from __future__ import annotations

import os
import sys

from kontrast.train.folder import RunFolder


def damaged(folder: RunFolder, *, tell: bool = True) -> bool:
    """Whether files of a finished run are not what it wrote; they are made anew from its last checkpoint then."""
    changed = folder.changed()
    if not changed:
        return False
    seen = f"{', '.join(changed)} of {folder.path} {'is' if len(changed) == 1 else 'are'} not what the run wrote"
    if not folder.last.exists():
        raise ValueError(f"{seen}, and there is no checkpoint to make it from; put back a copy, or remove the folder")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(f"{seen}; run the recipe in one process, without torchrun, which makes it anew")
    if tell:
        print(f"{seen}; made anew from the last checkpoint", file=sys.stderr)
    return True
