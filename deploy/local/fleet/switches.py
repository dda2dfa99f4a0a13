"""Kinds of node by name: how one says which of those in fleet.yaml there are to be, and how many nodes more."""

from collections.abc import Iterable


def counts(words: Iterable[str]) -> dict[str, int]:
    """`h200` is one node of that kind, `h200=3` three, `h200=0` none. ValueError says which word is neither."""
    return dict(_count(word) for word in words)


def _count(word: str) -> tuple[str, int]:
    kind, given, count = word.partition("=")
    if not kind or (given and not count.isdigit()):
        raise ValueError(f"{word!r} is neither KIND nor KIND=N, e.g. h200 or h200=3")
    return kind, int(count) if given else 1
