"""Faults of disk and files: what is broken, and what must come of it."""
