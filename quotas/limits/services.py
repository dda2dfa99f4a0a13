"""The only writer of limits. Permission is the caller's question (`portal.tenants.access`, action
`limit.manage`).
"""

from django.db import transaction

from portal.core import due
from portal.core.audit import audit
from portal.core.errors import Invalid
from portal.tenants.models import Team
from quotas.catalog.models import Pool
from quotas.limits.models import MOST_UNITS, Limit


def set_limit(actor: str, team: Team, pool: Pool, nominal: int) -> Limit:
    """Let `team` hold `nominal` units of `pool` at once; the cluster follows.

    Lowering it below what is held takes nothing away: what is held stays, and nothing more is admitted.
    """
    if not 0 <= nominal <= MOST_UNITS:
        raise Invalid({"nominal": [f"Give a whole number from 0 to {MOST_UNITS}."]})
    with transaction.atomic():
        limit, created = Limit.objects.select_for_update().get_or_create(
            team=team, pool=pool, defaults={"nominal": nominal}
        )
        before = None if created else limit.nominal
        if before != nominal:
            if not created:
                limit.nominal = nominal
                limit.save(update_fields=["nominal"])
            audit(
                actor,
                "limit.set",
                f"{team.slug}/{pool.key}",
                before={"nominal": before},
                after={"nominal": nominal},
            )
            due.mark("platform")
    return limit
