"""The neighbours' losses under their own names and signatures: a project moves by changing one import.

=====================================================  ==========================================================
before                                                 after
=====================================================  ==========================================================
``from losses import SupConLoss``                      ``from kontrast.compat.supcontrast import SupConLoss``
``from pytorch_metric_learning import losses``         ``from kontrast.compat import pytorch_metric_learning as losses``
``from lightly.loss import NTXentLoss``                ``from kontrast.compat.lightly import NTXentLoss``
=====================================================  ==========================================================

Values and gradients are theirs, quirks of the mean included; time and memory are kontrast's, and none of the
three packages has to be installed. Where pytorch-metric-learning is, its losses here extend its own, so that its
wrappers, distances and reducers go with them. Each module says on top what it computes and where it deviates.

>>> import torch
>>> from kontrast.compat.supcontrast import SupConLoss
>>> from kontrast.compat import pytorch_metric_learning as losses
>>> from kontrast.compat.lightly import NTXentLoss
>>> views = torch.eye(2)
>>> SupConLoss(temperature=1.0, base_temperature=1.0)(torch.stack([views, views], dim=1))
tensor(0.5514)
>>> losses.NTXentLoss(temperature=1.0)(torch.cat([views, views]), torch.tensor([0, 1, 0, 1]))
tensor(0.5514)
>>> NTXentLoss(temperature=1.0)(views, views)
tensor(0.5514)
"""
