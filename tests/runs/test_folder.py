"""A folder whose files are attributes."""

from __future__ import annotations

from pathlib import Path

from kontrast.runs import Run
from kontrast.runs.folder import File, Folder


class Notes(Folder):
    first = File("first.txt")
    deep = File("more/deep.txt")


def test_files_are_paths_and_the_folder_is_one_too(tmp_path: Path) -> None:
    notes = Notes(str(tmp_path))
    assert (notes.first, notes.deep) == (tmp_path / "first.txt", tmp_path / "more" / "deep.txt")
    (tmp_path / "first.txt").write_text("one")
    assert (Path(notes) / "first.txt").read_text() == "one"
    assert Notes(notes) == notes
    assert len({Notes(tmp_path), Notes(tmp_path), Run(tmp_path)}) == 2, "equal by folder, and by what it is"
