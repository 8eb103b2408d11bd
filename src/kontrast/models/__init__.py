"""Encoders, heads, the momentum pair, queue, memory bank, batch norm across ranks.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
