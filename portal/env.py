"""Typed reading of environment variables.

`NAME` holds the value; where it is unset, `NAME_FILE` may name a file that holds it, as Docker and Kubernetes
mount secrets. An empty variable counts as unset. A malformed value raises `ImproperlyConfigured` naming the
variable.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


def _raw(name: str) -> str | None:
    value = os.environ.get(name, "").strip()
    if value:
        return value
    path = os.environ.get(f"{name}_FILE", "").strip()
    return Path(path).read_text(encoding="utf-8").strip() if path else None


def _parsed(name: str, default: T, parse: Callable[[str], T]) -> T:
    raw = _raw(name)
    if raw is None:
        return default
    try:
        return parse(raw)
    except (KeyError, ValueError) as error:
        raise ImproperlyConfigured(f"{name} has a value that cannot be read: {error}") from error


def text(name: str, default: str = "") -> str:
    return _parsed(name, default, str)


def required(name: str) -> str:
    value = _raw(name)
    if value is None:
        raise ImproperlyConfigured(f"{name} is not set; set it, or {name}_FILE to a file that holds it.")
    return value


def integer(name: str, default: int) -> int:
    return _parsed(name, default, int)


def boolean(name: str, default: bool) -> bool:
    return _parsed(name, default, lambda raw: {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}[raw.lower()])


def strings(name: str, default: list[str]) -> list[str]:
    return _parsed(name, default, lambda raw: [word.strip() for word in raw.split(",") if word.strip()])
