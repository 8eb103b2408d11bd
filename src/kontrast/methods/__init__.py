"""One method a file: which views go through what into which loss.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
