"""The experiments of each paper, a module a paper, each with its ``EXPERIMENTS``."""
