"""Free points on the sphere; every lemma and theorem as a check.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
