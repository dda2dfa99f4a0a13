"""Warnings about choices that are accepted but probably unintended. Pure."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

TRAINING = re.compile(r"\b((pre-?|re-?)?train|fine-?tun|epochs?\b|rlhf\b|sft\b|lora\b|hyper-?param)\w*", re.I)
LONG_HOURS = 24
"""A request for more hours than this looks like training."""


WarningReason = Literal["not_isolated"]


@dataclass(frozen=True)
class ChoiceWarning:
    """A warning about a choice. Like a Violation, but the request is accepted."""

    reason: WarningReason
    detail: str
    hint: str


def warnings(
    offering: str, isolation: str, note: str, count: int, hours: Fraction, purpose: str
) -> list[ChoiceWarning]:
    """Return the warnings about a request: at most one, for training on a slice that is not isolated.

    ``isolation`` and ``note`` are the level and the note of the slice's isolation.
    """
    if isolation != "none" or not (signs := _training(count, hours, purpose)):
        return []
    detail = f"This looks like training ({signs}), and {offering} is shared, not isolated. {note}"
    hint = "For training, use an isolated slice: a MIG slice or a whole GPU."
    return [ChoiceWarning("not_isolated", detail.strip(), hint)]


def _training(count: int, hours: Fraction, purpose: str) -> str:
    signs = []
    if found := TRAINING.search(purpose):
        signs.append(f"the purpose says {found.group().lower()}")
    if count > 1:
        signs.append(f"{count} slices at once")
    if hours > LONG_HOURS:
        signs.append(f"{int(hours)} hours")
    return ", ".join(signs)
