"""When the ledger of each cluster begins, and since when its capacity is recorded."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Model, OuterRef, Subquery

from portal.clusters.models import Cluster
from quotas.metering.hours import hour_of
from quotas.metering.models import CapacityInterval, UsageInterval


class _Starts(NamedTuple):
    """The first starts in a cluster's ledgers, None where there is no interval."""

    cluster: str
    capacity: datetime | None
    usage: datetime | None


def first_hours() -> dict[str, datetime]:
    """Return the hour of the first interval of each cluster that has any; one query."""
    return {one.cluster: hour_of(min(filter(None, (one.capacity, one.usage)))) for one in _starts()}


def unrecorded_until(moment: datetime) -> datetime | None:
    """Return when the first ledger begins, if that is after this moment; None if the moment is recorded, or if nothing
    says since when capacity is; one query.

    What is 0 before that time is not known to be 0.
    """
    starts = _starts()
    if not any(one.capacity for one in starts):
        return None
    begins = min(at for one in starts for at in (one.capacity, one.usage) if at)
    return begins if begins > moment else None


def capacity_recorded_since() -> dict[str, datetime | None]:
    """Return by cluster since when its capacity is recorded, of the clusters with a ledger; one query.

    Before that only what was held is known; None is all the time until now.
    """
    return {one.cluster: one.capacity for one in _starts()}


def _starts() -> list[_Starts]:
    rows = Cluster.objects.annotate(capacity=_first(CapacityInterval), usage=_first(UsageInterval))
    found = (_Starts(*values) for values in rows.values_list("slug", "capacity", "usage"))
    return [one for one in found if one.capacity or one.usage]


def _first(model: type[Model]) -> Subquery:
    of_cluster = model._default_manager.filter(cluster=OuterRef("slug"))
    return Subquery(of_cluster.order_by("start").values("start")[:1])
