"""Parses and formats quantities of Kubernetes: ``40Gi``, ``500m``, ``1e3``, ``1k``. Exact.

Source: k8s.io/apimachinery pkg/api/resource, quantity.go (the grammar in the comment of type Quantity).
"""

import functools
import re
from fractions import Fraction

from portal.core.quotation import quoted

_AMOUNT = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([A-Za-z]{0,2}|[eE][+-]?[0-9]{1,2})", re.ASCII)
_BINARY = {f"{letter}i": Fraction(2) ** (10 * n) for n, letter in enumerate("KMGTPE", start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
MAX_LENGTH = 40


@functools.lru_cache(4096)
def value(text: str) -> Fraction:
    """Return the quantity as a number; raise ValueError for what Kubernetes would not read."""
    match = _AMOUNT.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise ValueError(f"{quoted(text[:MAX_LENGTH])} is no amount such as 1, 500m or 40Gi")
    number, suffix = Fraction(match[1]), match[2]
    if suffix in _BINARY:
        return number * _BINARY[suffix]
    if suffix in _DECIMAL:
        return number * Fraction(10) ** _DECIMAL[suffix]
    if suffix[:1] in ("e", "E") and suffix[1:]:
        return number * Fraction(10) ** int(suffix[1:])
    raise ValueError(f'"{text}" has the unknown unit "{suffix}"; units are Ki to Ei, n, u, m, k, M, G, T, P and E')


def mib(text: str) -> int:
    """Return whole MiB, rounded down; raise ValueError for what is no quantity."""
    return int(value(text) / 2**20)


def millicores(text: str) -> int:
    """Return thousandths of a CPU, rounded down; raise ValueError for what is no quantity."""
    return int(value(text) * 1000)


def cpu_text(millicores: int) -> str:
    """Return ``23``, or ``23500m`` for what is no whole number."""
    cpus, rest = divmod(millicores, 1000)
    return f"{millicores}m" if rest else str(cpus)


def memory_text(mib: int) -> str:
    """Return memory in the largest unit that gives a whole number: ``250Gi``, ``30000Mi``."""
    for unit, size in (("Ti", 2**20), ("Gi", 2**10)):
        if mib and mib % size == 0:
            return f"{mib // size}{unit}"
    return f"{mib}Mi"


def count(text: str) -> int:
    """Return a whole number; raise ValueError for what is none."""
    found = value(text)
    if found.denominator != 1:
        raise ValueError(f'"{text}" is no whole number')
    return int(found)
