"""Parses the arguments that switch on kinds of node, as `KIND` or `KIND=N`."""

from collections.abc import Iterable


def extra_nodes(arguments: Iterable[str]) -> dict[str, int]:
    """Return the number of extra nodes of each kind: `h200` is 1, `h200=3` is 3. Raises ValueError for any other
    word.
    """
    return dict(_count(word) for word in arguments)


def _count(word: str) -> tuple[str, int]:
    kind, has_count, count = word.partition("=")
    if not kind or (has_count and not count.isdigit()):
        raise ValueError(f"{word!r} is neither KIND nor KIND=N, e.g. h200 or h200=3")
    return kind, int(count) if has_count else 1
