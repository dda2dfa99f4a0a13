"""The labels of a request: Kubernetes' syntax. Pure.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
"""

import re
from collections.abc import Iterator, Mapping

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DNS_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_KEY = re.compile(rf"(?:(?P<prefix>{_DNS_LABEL}(?:\.{_DNS_LABEL})*)/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
MAX_PREFIX, MAX_LABELS = 253, 16
WORDS = "at most 63 letters, digits, dots, dashes and underscores, with a letter or digit at both ends"


def is_key(text: str) -> bool:
    """Return whether a label may have this key."""
    found = _KEY.fullmatch(text)
    return found is not None and len(found["prefix"] or "") <= MAX_PREFIX


def is_value(text: str) -> bool:
    """Return whether a label may have this value."""
    return bool(_VALUE.fullmatch(text))


def problems(labels: Mapping[str, str]) -> Iterator[str]:
    """Yield why these cannot be the labels of a request, in sentences."""
    if len(labels) > MAX_LABELS:
        yield f"There are {len(labels)} labels. Give at most {MAX_LABELS}."
    for key, value in labels.items():
        if not is_key(key):
            yield f"{key[:80]!r} is not a valid label key. Use {WORDS}, after a domain and / if you like."
        elif not is_value(value):
            yield f"{value[:80]!r} is not a valid value of the label {key}. Use {WORDS}, or nothing."
