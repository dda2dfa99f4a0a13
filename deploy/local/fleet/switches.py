"""Parses the arguments that switch on kinds of node, as `KIND` or `KIND=N`."""

from collections.abc import Iterable


def counts(words: Iterable[str]) -> dict[str, int]:
    """Return the number of extra nodes of each kind: `h200` is 1, `h200=3` is 3. Raises ValueError for any other word.
    """
    return dict(_count(word) for word in words)


def _count(word: str) -> tuple[str, int]:
    kind, given, count = word.partition("=")
    if not kind or (given and not count.isdigit()):
        raise ValueError(f"{word!r} is neither KIND nor KIND=N, e.g. h200 or h200=3")
    return kind, int(count) if given else 1
