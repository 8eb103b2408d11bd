"""Tables and figures of the papers: grid, runner, comparison, tuning.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
