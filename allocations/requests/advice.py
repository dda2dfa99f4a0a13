"""Warnings about choices that are accepted but probably unintended. Pure."""

import re
from dataclasses import dataclass
from fractions import Fraction

TRAINING = re.compile(r"\b((pre-?|re-?)?train|fine-?tun|epochs?\b|rlhf\b|sft\b|lora\b|hyper-?param)\w*", re.I)
LONG_HOURS = 24
"""A shared slice that is wanted for longer is hardly for trying something out."""


@dataclass(frozen=True)
class Warned:
    """As a Violation, but nothing is refused."""

    reason: str
    detail: str
    hint: str


def warnings(offering: str, isolation: str, note: str, count: int, hours: Fraction, purpose: str) -> list[Warned]:
    """At most one so far: work that looks like training on a slice that is not isolated."""
    if isolation != "none" or not (signs := _training(count, hours, purpose)):
        return []
    detail = f"This looks like training ({signs}), and {offering} is shared, not isolated. {note}"
    return [Warned("not_isolated", detail.strip(), "For training take a slice of its own: a MIG slice or a whole GPU.")]


def _training(count: int, hours: Fraction, purpose: str) -> str:
    signs = []
    if found := TRAINING.search(purpose):
        signs.append(f"the purpose says {found.group().lower()}")
    if count > 1:
        signs.append(f"{count} slices at once")
    if hours > LONG_HOURS:
        signs.append(f"{int(hours)} hours")
    return ", ".join(signs)
