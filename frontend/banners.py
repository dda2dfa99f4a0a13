"""The banners of all pages: which of the portal's processes does not work, and whether etcd is full."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from allocations.reconcile import etcd_monitor
from portal.core import clock, heartbeat
from portal.core.reading import Part, digest_of, read_tables
from portal.health import EXPECTED


@dataclass(frozen=True)
class Banners:
    """``stale_processes`` names those that did not report for a while, as ``worker and watcher``; else it is empty."""

    stale_processes: str
    is_store_full: bool

    @property
    def version(self) -> str:
        return digest_of(self.stale_processes, self.is_store_full)


def current() -> Banners:
    """Return the banners to show now; one query."""
    return of_rows(*read_tables(*parts()))


def parts() -> tuple[Part, Part]:
    """Return what to read for ``of_rows``."""
    return heartbeat.part(), etcd_monitor.any_refused()


def of_rows(beats: Iterable[tuple[str, str]], refused: Collection[object]) -> Banners:
    """Return the banners by what ``parts`` read."""
    return Banners(_stale_processes(heartbeat.of_rows(beats)), bool(refused))


def _stale_processes(last: Mapping[str, datetime]) -> str:
    now = clock.now()
    return " and ".join(
        name for name in EXPECTED if name not in last or (now - last[name]).total_seconds() > settings.STALE_S
    )
