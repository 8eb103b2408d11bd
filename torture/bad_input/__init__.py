"""Bad input, by kind: what is varied, what is called with it, and what a right result is (`torture/inputs.py`)."""
