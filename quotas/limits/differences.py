"""Field-by-field differences between two lists of manifests. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Manifest = Mapping[str, Any]


class Difference(NamedTuple):
    """A field of an object; None if it is absent."""

    kind: str
    name: str
    field: str
    before: str | None
    after: str | None


def between(before: Sequence[Manifest], after: Sequence[Manifest]) -> list[Difference]:
    """Return all differences, sorted by object and field. Items of lists are identified by `name`, else by index."""
    old, new = _fields(before), _fields(after)
    return [
        Difference(*key, old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _fields(manifests: Sequence[Manifest]) -> dict[tuple[str, str, str], str]:
    return {
        (one["kind"], one["metadata"]["name"], path): value for one in manifests for path, value in _leaves(one["spec"])
    }


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inner in enumerate(value):
            key = inner["name"] if isinstance(inner, Mapping) and "name" in inner else number
            yield from _leaves(inner, f"{path}[{key}]")
    else:
        yield path, str(value)
