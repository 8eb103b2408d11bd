"""One file a paper: typed Python, no YAML twins.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
