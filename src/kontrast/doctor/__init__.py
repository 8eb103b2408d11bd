"""One rule a file: disease, evidence, cure.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
