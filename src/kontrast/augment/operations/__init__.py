"""Operations that a recipe may list by name, one per file: ``color_jitter.py`` is ``"color-jitter"``.

A file declares one frozen dataclass derived from `kontrast.augment.Operation`; its fields are the options. The first
paragraph of the file's docstring is what ``kontrast list augmentations`` prints. A field ``size`` is filled in with the
size of the data, and a class for feature vectors sets ``kind = "vector"``.

>>> from kontrast.registry import FAMILIES
>>> FAMILIES["operation"]["color-jitter"].__name__
'ColorJitter'
"""
