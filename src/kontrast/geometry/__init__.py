"""What was learned, measured: uniformity, tolerance, entropy, separation, gradients, simplex, bounds, spectrum.

A stage of the arrow drawn in ``kontrast/__init__.py``; nothing lives here yet.
"""
