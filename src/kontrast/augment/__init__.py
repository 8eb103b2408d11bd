"""Batched augmentations on tensors, and their presets (simaugment, autoaugment, weak, …).

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
