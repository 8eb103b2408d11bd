"""What is killed (`kinds`), how and when (`crew`, `hook`), and what must be equal (`same`): for `torture/kills.py`."""
