"""Reading a JSON document field by field, and saying all that is wrong with it at once, each by its path."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from portal.core.errors import Invalid

T = TypeVar("T")


class Errors:
    """What is wrong, by path as in ``claim.requests[0].attributes[1].name``."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def add(self, path: str, sentence: str) -> None:
        self.found.setdefault(path, []).append(sentence)

    def raise_any(self) -> None:
        """Raises Invalid when anything was added."""
        if self.found:
            raise Invalid(self.found)


class Node:
    """A JSON object at a path. Its getters answer a value of the type asked for, or the default and an error."""

    def __init__(self, document: Any, path: str, errors: Errors, known: Sequence[str]) -> None:
        self.path, self.errors = path, errors
        self.fields: Mapping[str, Any] = document if isinstance(document, Mapping) else {}
        self.is_object = isinstance(document, Mapping)
        if not self.is_object:
            errors.add(path, "Give a JSON object.")
        for name in self.fields:
            if name not in known:
                errors.add(self.at(str(name)[:64]), f"There is no such field. Fields are: {', '.join(known)}.")

    def at(self, name: str) -> str:
        return f"{self.path}.{name}"

    def has(self, name: str) -> bool:
        return self.fields.get(name) is not None

    def error(self, name: str, sentence: str) -> None:
        self.errors.add(self.at(name), sentence)

    def text(self, name: str, default: str = "") -> str:
        return self._typed(name, str, "Give a string.", default)

    def flag(self, name: str) -> bool:
        return self._typed(name, bool, "Give true or false.", False)

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number in the range, or None where it is not given or wrong."""
        words = f"Give a whole number from {least} to {most}, as a JSON number."
        given = self.fields.get(name)
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
            self.error(name, words)
            return None
        return given

    def choice(self, name: str, options: Sequence[str], default: str = "") -> str:
        """One of the options; anything else is an error, and the default."""
        given = self.fields.get(name, default)
        if isinstance(given, str) and given in options:
            return given
        if self.is_object:
            self.error(name, f"Use one of {', '.join(options)}.")
        return default

    def texts(self, name: str, most: int) -> list[str]:
        return [str(item) for _, item in self._list(name, most, str, "Give a list of strings.")]

    def each(self, name: str, most: int, read: Callable[[Any, str], T]) -> list[T]:
        """What ``read(document, path)`` makes of each item of a list."""
        return [read(item, path) for path, item in self._list(name, most, object, "")]

    def mapping(self, name: str) -> Mapping[str, Any]:
        return self._typed(name, Mapping, "Give a JSON object.", {})  # type: ignore[type-abstract]

    def _list(self, name: str, most: int, kind: type, words: str) -> list[tuple[str, Any]]:
        given = self.fields.get(name)
        if given is None:
            return []
        if not isinstance(given, list):
            self.error(name, "Give a list.")
            return []
        if len(given) > most:
            self.error(name, f"It has {len(given)} items; {most} are the most.")
        paths = [(f"{self.at(name)}[{index}]", item) for index, item in enumerate(given[:most])]
        for path, item in paths:
            if not isinstance(item, kind):
                self.errors.add(path, words)
        return [(path, item) for path, item in paths if isinstance(item, kind)]

    def _typed(self, name: str, kind: type[T], words: str, default: T) -> T:
        given = self.fields.get(name)
        if given is None:
            return default
        if not isinstance(given, kind):
            self.error(name, words)
            return default
        return given
