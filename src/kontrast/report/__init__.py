"""Collect, chart, page: reads files only and never imports torch.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
