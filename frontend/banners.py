"""The banners of all pages: which of the portal's processes does not work, whether etcd is full, and those that modules
of views have as `BANNERS`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings

from allocations.reconcile import etcd_monitor
from frontend import views
from portal.core import clock, heartbeat
from portal.core.modules import modules_of
from portal.core.reading import Part, digest_of, read_tables
from portal.health import EXPECTED


@dataclass(frozen=True)
class Banner:
    """A sentence for everybody. ``tone`` is ``bad``, ``warn`` or ``quiet``."""

    text: str
    tone: str


@dataclass(frozen=True)
class Source:
    """Where banners come from: ``part`` returns what to read, and ``of_rows`` the banners of the rows."""

    part: Callable[[], Part]
    of_rows: Callable[[Collection[Any]], Iterable[Banner]]


@dataclass(frozen=True)
class Banners:
    shown: tuple[Banner, ...]

    @property
    def version(self) -> str:
        return digest_of(*((one.text, one.tone) for one in self.shown))


def current() -> Banners:
    """Return the banners to show now; one query."""
    return of_parts(read_tables(*parts()))


def parts() -> list[Part]:
    """Return what to read for ``of_parts``."""
    return [source.part() for source in _sources()]


def of_parts(found: Iterable[Collection[Any]]) -> Banners:
    """Return the banners by what ``parts`` read."""
    return Banners(tuple(one for source, rows in zip(_sources(), found, strict=True) for one in source.of_rows(rows)))


@cache
def _sources() -> list[Source]:
    of_views = [source for module in modules_of(views) for source in getattr(module, "BANNERS", ())]
    return [Source(heartbeat.part, _stale), Source(etcd_monitor.any_refused, _full), *of_views]


def _stale(beats: Iterable[tuple[str, str]]) -> Iterator[Banner]:
    last, now = heartbeat.of_rows(beats), clock.now()
    stale = [name for name in EXPECTED if name not in last or (now - last[name]).total_seconds() > settings.STALE_S]
    if stale:
        yield Banner(
            f"The portal is delayed. Its {' and '.join(stale)} did not report for a while. GPUs that are held stay "
            "held, but this page may show an old state.",
            "warn",
        )


def _full(refused: Collection[object]) -> Iterator[Banner]:
    if refused:
        yield Banner(
            "The cluster refuses every change because its store (etcd) is full. GPUs that are held stay held. Requests "
            "wait until an operator frees space.",
            "bad",
        )
