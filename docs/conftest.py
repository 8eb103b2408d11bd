"""Examples in the files that a page shows are run where the files are (`tests/test_new_parts.py`), not on the page."""

from __future__ import annotations

import re

import pytest

FILE = re.compile(r"<!-- file: \S+ -->\n```python\n.*?^```$", re.DOTALL | re.MULTILINE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        test = getattr(item, "dtest", None)
        if test is None or item.path.name != "contributing.md":
            continue
        text = item.path.read_text(encoding="utf-8")
        blocks = [(text.count("\n", 0, m.start()), text.count("\n", 0, m.end())) for m in FILE.finditer(text)]
        test.examples = [e for e in test.examples if not any(first <= e.lineno <= last for first, last in blocks)]
