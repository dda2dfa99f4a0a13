"""Reads a JSON document field by field, and collects all errors by path."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from portal.core.errors import Invalid

T = TypeVar("T")


class Errors:
    """Errors by path, as in ``claim.requests[0].attributes[1].name``."""

    def __init__(self) -> None:
        self.by_path: dict[str, list[str]] = {}

    def add(self, path: str, sentence: str) -> None:
        """Add an error."""
        self.by_path.setdefault(path, []).append(sentence)

    def raise_any(self) -> None:
        """Raise Invalid if there are errors."""
        if self.by_path:
            raise Invalid(self.by_path)


class Node:
    """A JSON object at a path.

    Each getter returns a value of its type. For any other value it adds an error and returns the default.
    """

    def __init__(self, document: Any, path: str, errors: Errors, names: Sequence[str]) -> None:
        self.path, self.errors = path, errors
        self.fields: Mapping[str, Any] = document if isinstance(document, Mapping) else {}
        self.is_object = isinstance(document, Mapping)
        if not self.is_object:
            errors.add(path, "Give a JSON object.")
        for name in self.fields:
            if name not in names:
                errors.add(self.at(str(name)[:64]), f"There is no such field. Fields are: {', '.join(names)}.")

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}"

    def has(self, name: str) -> bool:
        """Return whether the field is present and not null."""
        return self.fields.get(name) is not None

    def error(self, name: str, sentence: str) -> None:
        """Add an error about a field."""
        self.errors.add(self.at(name), sentence)

    def text(self, name: str, default: str = "") -> str:
        """Return a string."""
        return self._typed(name, str, "Give a string.", default)

    def flag(self, name: str) -> bool:
        """Return a boolean; false by default."""
        return self._typed(name, bool, "Give true or false.", False)

    def whole(self, name: str, least: int, most: int) -> int | None:
        """Return an integer in the range; None if it is absent or wrong."""
        value = self.fields.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.error(name, f"Give a whole number from {least} to {most}, as a JSON number.")
            return None
        return value

    def choice(self, name: str, options: Sequence[str], default: str = "") -> str:
        """Return one of the options."""
        value = self.fields.get(name, default)
        if isinstance(value, str) and value in options:
            return value
        if self.is_object:
            self.error(name, f"Use one of {', '.join(options)}.")
        return default

    def texts(self, name: str, most: int) -> list[str]:
        """Return a list of at most ``most`` strings."""
        return [str(item) for _, item in self._list(name, most, str, "Give a list of strings.")]

    def each(self, name: str, most: int, read: Callable[[Any, str], T]) -> list[T]:
        """Return what ``read(document, path)`` returns for each item of a list."""
        return [read(item, path) for path, item in self._list(name, most, object, "")]

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a JSON object; empty by default."""
        return self._typed(name, Mapping, "Give a JSON object.", {})  # type: ignore[type-abstract]

    def _list(self, name: str, most: int, kind: type, sentence: str) -> list[tuple[str, Any]]:
        items = self.fields.get(name)
        if items is None:
            return []
        if not isinstance(items, list):
            self.error(name, "Give a list.")
            return []
        if len(items) > most:
            self.error(name, f"It has {len(items)} items; {most} are the most.")
        by_path = [(f"{self.at(name)}[{index}]", item) for index, item in enumerate(items[:most])]
        for path, item in by_path:
            if not isinstance(item, kind):
                self.errors.add(path, sentence)
        return [(path, item) for path, item in by_path if isinstance(item, kind)]

    def _typed(self, name: str, kind: type[T], sentence: str, default: T) -> T:
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            self.error(name, sentence)
            return default
        return value
