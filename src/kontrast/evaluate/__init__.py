"""Features, kNN, retrieval, linear probes.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
