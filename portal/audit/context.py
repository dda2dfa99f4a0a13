"""From where the work at hand was asked: the way in, the address, the token; for the audit log."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token

_source: ContextVar[Mapping[str, str]] = ContextVar("source", default={})  # noqa: B039 (never changed in place)


def begin(way: str, **facts: str) -> Token[Mapping[str, str]]:
    """From now on work comes by `way`: `page`, `api`, `admin`, `command` or `worker`; empty facts are left out."""
    return _source.set({"way": way, **{name: value for name, value in facts.items() if value}})


@contextmanager
def came_by(way: str, **facts: str) -> Iterator[None]:
    """As `begin`, during the block."""
    token = begin(way, **facts)
    try:
        yield
    finally:
        _source.reset(token)


def add(**facts: str) -> None:
    """Say more of the source, once it is known, until the block of `came_by` ends."""
    _source.set({**_source.get(), **facts})


def current() -> dict[str, str]:
    """What is known: `way`, and of `address`, `request_id`, `token` (its prefix), `command`, `task` those there are."""
    return dict(_source.get())
