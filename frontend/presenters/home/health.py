"""Whether the portal itself works: its processes, its work queue, Redis, etcd, and the balance of the ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.urls import reverse

from allocations.reconcile import mirror
from frontend.presenters import amounts
from portal import health
from portal.core import clock, heartbeat
from quotas.metering import proofs

READYZ = "/readyz"


@dataclass(frozen=True)
class Check:
    """One part of the portal. ``url`` is where it is explained."""

    name: str
    sentence: str
    is_good: bool
    url: str


def checks() -> Sequence[Check]:
    """Return the checks of `/readyz` and the numbers of `/metrics`, in words; a fixed number of queries for each
    cluster.
    """
    return [*_processes(), *_mirrors(), _work_queue(), *_stores(), *_balance()]


def _processes() -> Iterator[Check]:
    last, now = heartbeat.last(), clock.now()
    for name in health.EXPECTED:
        age_s = _age_s(last.get(name), now)
        is_good = age_s is not None and age_s <= settings.STALE_S
        words = "No heartbeat yet" if age_s is None else f"Heartbeat {_ago(age_s)}"
        yield Check(name.capitalize(), words, is_good, _docs())


def _mirrors() -> Iterator[Check]:
    seen, now = mirror.leases_seen_at(), clock.now()
    for cluster, at in seen.items():
        name = f"Cluster cache of {cluster}" if len(seen) > 1 else "Cluster cache"
        is_good = now - at <= mirror.RECENT
        words = "In sync" if is_good else f"In sync {_ago((now - at).total_seconds())}"
        yield Check(name, words, is_good, _docs())


def _work_queue() -> Check:
    found = health.work_queue()
    is_good = found.lag_s <= settings.STALE_S and not found.failing
    lag = f", the longest for {_length(found.lag_s)}" if found.due else ""
    failing = f"; {found.failing} failed and will be tried again" if found.failing else ""
    return Check("Work queue", f"{found.due or 'Nothing'} due{lag}{failing}", is_good, _docs())


def _stores() -> Iterator[Check]:
    found = health.working_checks()
    for key, name in (("redis", "Redis"), ("cluster_store", "etcd")):
        is_good = found[key] == health.OK
        yield Check(name, "Works" if is_good else found[key].capitalize(), is_good, READYZ)


def _balance() -> Iterator[Check]:
    found = proofs.summaries()
    for one in found:
        unchecked = f", {_hours(one.missing)} not checked yet" if one.missing else ""
        words = f"{_hours(one.failed)} not balanced{unchecked}" if one.failed else f"Balanced{unchecked}"
        name = f"Ledger of {one.cluster}" if len(found) > 1 else "Ledger"
        yield Check(name, words, not one.failed, reverse("proof"))


def _docs() -> str:
    return f"{reverse('docs')}operate/troubleshoot.html"


def _hours(count: int) -> str:
    return f"{count} hour{'' if count == 1 else 's'}"


def _age_s(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else (now - at).total_seconds()


def _ago(age_s: float) -> str:
    return f"{_length(age_s)} ago"


def _length(seconds: float) -> str:
    return amounts.span(timedelta(seconds=seconds))
