"""One schedule a file; the file name is its name (``warmup-cosine`` is ``warmup_cosine.py``).

`kontrast.optim.schedule` makes them.
"""
