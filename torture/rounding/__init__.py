"""Numerics: the grid of inputs (`degenerate`), its errors (`grid`), and 100,000 steps with a queue (`stability`)."""
