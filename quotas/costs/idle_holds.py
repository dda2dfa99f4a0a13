"""Reads since when holds have no pod."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, Q

from quotas.costs import savings_rules
from quotas.costs.savings_rules import PodUse
from quotas.metering.models import HoldUse


def since(held_since: Mapping[UUID, datetime]) -> dict[UUID, datetime]:
    """Return since when each of these holds has no pod, without those that have one; one query, none without holds."""
    if not held_since:
        return {}
    rows = HoldUse.objects.filter(holder_id__in=held_since).order_by().values_list("holder_id")
    counted = rows.annotate(last=Max("end"), running=Count("id", filter=Q(end=None)))
    pods = {holder: PodUse(last, bool(running)) for holder, last, running in counted}
    found = {holder: savings_rules.idle_since(at, pods.get(holder)) for holder, at in held_since.items()}
    return {holder: at for holder, at in found.items() if at}
