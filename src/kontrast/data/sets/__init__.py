"""The sets known by name: a file each, found by its name (``cifar10.py`` is ``"cifar10"``).

Each class says where its files belong, reads them as their publishers laid them out, and carries the channel statistics
that the papers normalise with (another recipe may bring its own).

>>> from kontrast.data.loading import SETS
>>> SETS["fashion-mini"].__name__
'FashionMini'
"""
