"""Cures that name the settings which the recipe's own method has, and no other."""

from __future__ import annotations

from kontrast.doctor.record import Record

COLD = 0.022  # below it the temperature is ill (`temperature_low`)


def spreading(record: Record) -> str:
    """What gives a loss something that tells images apart."""
    options = record.options
    found = pulling_less(record)
    if "target_temperature" in options:
        half = options["temperature"] / 2
        if options["target_temperature"] > half:
            found.append(f"a target sharper than the online network (method.target_temperature={half:g})")
        if options.get("contrastive_weight") == 0:
            found.append("negatives (method.contrastive_weight=0.5)")
    if record.temperature is not None and record.temperature < COLD:
        found.append("a higher temperature (method.temperature=0.1)")
    found.append(f"a lower rate (optim.lr={record.recipe.optim.options['lr'] / 10:.2g})")
    if record.method.needs_labels:
        found.append("labels of two classes or more in every batch")
    if record.recipe.head.name == "none":
        found.append("a head between encoder and loss (head=tcl)")
    return f"{', '.join(found)}; look whether the head's output is constant"


def pulling_less(record: Record) -> list[str]:
    """Of TCL, whose k1 may pull positives so hard that all embeddings in one point are nearly as good as any."""
    k1 = record.options.get("k1")
    return [f"a weaker pull (method.k1={k1 / 10:g}; 0 is SupCon)"] if k1 else []
