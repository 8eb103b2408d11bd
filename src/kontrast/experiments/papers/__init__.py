"""The experiments of each paper, a module a paper, each with its ``EXPERIMENTS``."""

BESIDE = (
    "The paper's values stand beside ours on its own sets, and without a difference on a part of one "
    "(fashion-mini, or a file whose name begins with the set's: cifar10-50k.npz); on other data there are none."
)
