"""The channel by which the current work was requested, with address and token, for the audit log."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token

_facts: ContextVar[Mapping[str, str]] = ContextVar("source", default={})  # noqa: B039 (never changed in place)


def begin(name: str, **facts: str) -> Token[Mapping[str, str]]:
    """Set the channel of the current work: `page`, `api`, `admin`, `command` or `worker`. Empty facts are left out.

    The key is `way`, as in all entries that were written before: an entry cannot be changed.
    """
    return _facts.set({"way": name, **{key: value for key, value in facts.items() if value}})


@contextmanager
def channel(name: str, **facts: str) -> Iterator[None]:
    """Set the channel for the duration of the block."""
    token = begin(name, **facts)
    try:
        yield
    finally:
        _facts.reset(token)


def add(**facts: str) -> None:
    """Add facts about the source, until the block of `channel` ends."""
    _facts.set({**_facts.get(), **facts})


def current() -> dict[str, str]:
    """Return the known facts: `way`, and `address`, `request_id`, `token` (its prefix), `command` or `task`."""
    return dict(_facts.get())
