"""Sets by name, image folders, arrays; the bundled set; label noise; samplers.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
