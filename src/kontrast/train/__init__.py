"""Loop, checkpoints, progress, monitors, run folder.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
