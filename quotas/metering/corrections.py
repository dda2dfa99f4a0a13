"""Write operations on ends that nobody saw: corrects them once an object of the same uid says when they were."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from portal.core import clock
from quotas.metering import dirty_hours
from quotas.metering.models import Correction, ForeignUse, UsageInterval

MAX_LATENESS = timedelta(days=1)
"""How long before the present an interval may have ended that is still corrected."""


def correct_pod_ends(
    cluster: str,
    uid: str,
    slot_prefixes: Collection[str],
    at: datetime,
    evidence: Mapping[str, Any],
    last_seen_at: datetime | None = None,
) -> int:
    """Correct the estimated ends of what a pod used, since it says itself that it finished ``at``; return how many.

    ``slot_prefixes`` begin the slots of its intervals in the usage ledger. Only an end that is estimated is corrected,
    and then is estimated no longer, so this may be repeated. An interval that began later, or after which another one
    began in its slot, stays, and so does one that ended more than MAX_LATENESS ago, unless an outage is as long: it
    began at ``last_seen_at``. A fixed number of queries.
    """
    now = clock.now()
    since = min(now - MAX_LATENESS, last_seen_at or now)
    ended = Q(estimated_end=True, end__gte=since, start__lte=at) & ~Q(end=at)
    of_pod = Q()
    for prefix in slot_prefixes:
        of_pod |= Q(slot__startswith=prefix)
    with transaction.atomic():
        usage = list(UsageInterval.objects.filter(ended & of_pod, cluster=cluster)) if slot_prefixes else []
        foreign = list(ForeignUse.objects.filter(ended, cluster=cluster, uid=uid))
        reused = UsageInterval.objects.filter(slot__in={row.slot for row in usage}).values_list("slot", "start")
        later = {row.pk for row in usage for slot, start in reused if slot == row.slot and start > row.start}
        usage = [row for row in usage if row.pk not in later]
        common: dict[str, Any] = {
            "end": at,
            "cause": Correction.Cause.FINISHED,
            "evidence": dict(evidence),
            "recorded_at": now,
        }
        Correction.objects.bulk_create(
            [
                *(Correction(usage=row, **common, **{"former_end": row.end}) for row in usage),
                *(Correction(foreign_use=row, **common, **{"former_end": row.end}) for row in foreign),
            ]
        )
        corrected: dict[str, Any] = {"end": at, "estimated_end": False}
        UsageInterval.objects.filter(pk__in=[row.pk for row in usage]).update(**corrected)
        ForeignUse.objects.filter(pk__in=[row.pk for row in foreign]).update(**corrected)
        former = [end for end in (*(row.end for row in usage), *(row.end for row in foreign)) if end]
        if former:
            dirty_hours.mark(cluster, min(at, *former), max(at, *former))
    return len(usage) + len(foreign)
