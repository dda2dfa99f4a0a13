"""Shares pools among teams: for the demo, and for `accept_flavors --share`."""

from django.db import transaction
from simple_history.utils import bulk_create_with_history

from portal.audit.entries import audit
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.tenants.models import Team
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.selectors import pools
from quotas.limits import history
from quotas.limits.models import Limit


def seed_half_quotas() -> int:
    """Give each team half (rounded down) of every pool of an accepted flavor without a limit; return how many were set.

    An empty pool is left out, so that it gets its half once its nodes exist.
    """
    with transaction.atomic(), advisory_lock("limits", "seeds"):
        given = set(Limit.objects.values_list("team_id", "pool_id"))
        found = [pool for pool in pools().filter(flavor__accepted=True) if hasattr(pool, "use") and pool.use.total]
        missing = [
            Limit(team=team, pool=pool, nominal=pool.use.total // 2)
            for team in Team.objects.all()
            for pool in found
            if (team.pk, pool.pk) not in given
        ]
        if missing:
            bulk_create_with_history(missing, Limit)
            history.record_quotas(missing, clock.now())
            for limit in missing:
                audit(
                    "system",
                    "limit.set",
                    f"{limit.holder}/{limit.scope}",
                    team=str(limit.team),
                    after={"nominal": limit.nominal},
                )
            workqueue.enqueue(*targets.platforms())
    return len(missing)
