"""Settings by dotted keys: ``optim.lr=0.2``, ``augment.views.0.padding=2``; the value as YAML has it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from kontrast.plain import from_yaml
from kontrast.registry import nearest, quoted

SYNONYMS = {
    "seed": ("random_seed", "manual_seed"),
    "data": ("dataset", "datasets", "data_dir", "data_path", "data_name", "dataset_name", "dataset_path", "train_dir"),
    "data.size": ("image_size", "img_size", "input_size", "resolution"),
    "data.limit": ("max_samples", "num_samples", "subset"),
    "data.validation": ("val_split", "validation_split", "val_fraction", "val_size"),
    "data.noise": ("label_noise", "noise_rate"),
    "augment": ("augmentation", "augmentations", "aug", "transform", "transforms", "views"),
    "augment.jitter": ("color_jitter", "colour_jitter", "color", "colour"),
    "augment.grayscale": ("greyscale", "gray", "grey"),
    "augment.scale": ("crop", "crop_scale", "min_scale"),
    "encoder": ("model", "backbone", "arch", "architecture", "network", "net", "base_encoder", "model_name"),
    "encoder.pretrained": ("weights", "checkpoint", "ckpt", "init_from", "pretrained_weights"),
    "head": ("projector", "projection", "projection_head", "proj_head"),
    "head.out": ("proj_dim", "projection_dim", "proj_output_dim", "feat_dim", "embedding_dim", "embed_dim", "out_dim"),
    "head.hidden": ("proj_hidden_dim", "hidden_dim"),
    "method": ("loss", "criterion", "algorithm", "objective"),
    "method.temperature": ("tau", "temp", "t", "softmax_temperature"),
    "method.target_temperature": ("tau_m", "target_temp", "teacher_temperature", "temperature_t"),
    "method.contrastive_weight": ("lambda", "lam", "coeff"),
    "method.queue": ("queue_size", "queue_length", "memory_bank_size", "bank_size"),
    "method.k1": (),
    "method.k2": (),
    "optim": ("optimizer", "optimiser", "opt"),
    "optim.lr": ("learning_rate", "base_lr", "init_lr", "learningrate"),
    "optim.momentum": ("sgd_momentum",),
    "optim.weight_decay": ("wd", "l2", "decay"),
    "schedule": ("scheduler", "lr_scheduler", "lr_schedule", "learning_rate_schedule"),
    "schedule.warmup_epochs": ("warmup", "warmup_steps"),
    "train.epochs": ("max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "epoch"),
    "train.steps": ("max_steps", "num_steps", "iterations", "max_iter"),
    "train.batch_size": ("batchsize", "bs", "batch", "train_batch_size", "per_device_train_batch_size"),
    "train.micro_batch": ("accumulate_grad_batches", "gradient_accumulation_steps", "accumulation_steps", "chunk_size"),
    "train.precision": ("amp", "fp16", "bf16", "mixed_precision", "half"),
    "train.patience": ("early_stopping", "early_stopping_patience"),
    "evaluate": ("eval", "evaluation"),
    "evaluate.protocols": ("protocol", "metrics"),
    "run.device": ("gpu", "gpus", "cuda", "accelerator", "devices"),
    "run.workers": ("num_workers", "n_workers", "dataloader_num_workers"),
    "run.threads": ("num_threads", "n_threads"),
    "run.out": ("save_dir", "output_dir", "out_dir", "log_dir", "output", "save_folder", "results_dir"),
    "run.loggers": ("logger", "wandb", "tensorboard", "mlflow"),
    "run.monitors": ("monitor",),
    "run.log_every": ("log_interval", "log_freq", "print_freq", "log_every_n_steps"),
    "run.checkpoint_every": ("save_freq", "save_interval", "save_every", "checkpoint_frequency"),
}
"""Keys of a recipe, and what other tools call them; the last word of a key is one of its names too."""
_MEANT = {
    name: key for key, others in reversed(SYNONYMS.items()) for name in (*others, key.rpartition(".")[2])
}  # where two keys have a name, the first of the table


def suggest(key: str, known: Sequence[str], where: str = "") -> str:
    """The end of a sentence about an unknown key: what is meant by another tool's name, or the nearest known key.

    ``where`` is the section that was asked for it, empty for the recipe itself.

    >>> suggest("learning_rate", ["lr", "momentum"], "optim"), suggest("lr", ["epochs", "steps"], "train")
    ("; did you mean 'lr'?", "; did you mean 'optim.lr'?")
    >>> suggest("epochz", ["epochs", "steps"], "train"), suggest("xyz", ["epochs", "steps"], "train")
    ("; did you mean 'epochs'?", '.')
    """
    meant = _MEANT.get(key.lower().replace("-", "_"))
    if meant is None:
        return nearest(key, known)
    section, _, last = meant.rpartition(".")
    if meant == where:
        return f"; did you mean {where}=…?"
    if section != where:
        return f"; did you mean {meant!r}?"
    return f"; did you mean {last!r}?" if last in known else nearest(key, known)


def parse(setting: str) -> tuple[str, Any]:
    """``"optim.lr=0.2"`` → key and value, the value as YAML has it.

    >>> parse("train.epochs=5"), parse("augment.views=[weak, strong]"), parse("optim.lr=1e-3")
    (('train.epochs', 5), ('augment.views', ['weak', 'strong']), ('optim.lr', 0.001))
    """
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"{quoted(setting)} is no setting; expected key=value, such as optim.lr=0.2")
    try:
        value = from_yaml(text)
    except ValueError:
        value = text
    value = None if value == "None" else value
    if isinstance(value, str):  # YAML 1.1 takes 1e-3 for a word
        with contextlib.suppress(ValueError):
            value = float(value)
    return key.strip(), value


def place(where: Any, name: str, above: str, *, new: bool) -> int | str:
    """The index or key that a part of a dotted key names inside a list or mapping; ``new`` allows keys to be added.

    >>> place(["weak", "strong"], "1", "augment.views", new=False)
    1
    """
    if isinstance(where, list):
        if not (name.isdecimal() and len(name) < 10 and int(name) < len(where)):
            raise ValueError(f"{above}: expected a number from 0 to {len(where) - 1}, seen {quoted(name)}")
        return int(name)
    if not isinstance(where, dict):
        raise ValueError(f"{above} is {quoted(where)}, which has nothing inside; expected a key that ends there")
    if not new and name not in where:
        raise ValueError(unknown_key(name, list(where), above or "the recipe"))
    return name


def unknown_key(key: str, known: Sequence[str], where: str) -> str:
    """The sentence about a key that is not there."""
    hint = suggest(key, known, where.removeprefix("the recipe"))
    return f"{where} has no key {quoted(key)}{hint} Known: {', '.join(known) or 'none'}"
