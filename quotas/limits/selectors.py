"""How much a team may hold, and what that looks like to Kueue."""

from collections.abc import Sequence

from portal.tenants.models import Department, Team
from quotas.catalog.models import Cluster, Flavor
from quotas.catalog.selectors import pools
from quotas.limits import projection
from quotas.limits.models import Limit


def nominal(teams: Sequence[Team]) -> dict[tuple[str, str], int]:
    """Units each team may hold at once, by (team slug, pool key), in one query; a pair without a limit is
    absent: zero.
    """
    rows = Limit.objects.filter(team__in=teams).values_list("team__slug", "pool__key", "nominal")
    return {(team, pool): units for team, pool, units in rows}


def manifests(cluster: Cluster) -> list[projection.Manifest]:
    """All Cohorts, ResourceFlavors and ClusterQueues that `cluster` should have, in the order to apply.
    Five queries.

    Pools that are no longer found stay: Kueue forgets the usage of a flavor that is taken out of a queue
    (tried on 0.19.2: admitted leases drop out of its sum, which over-commits).
    """
    accepted = pools(cluster).filter(flavor__accepted=True)
    shapes = [projection.PoolShape(pool.key, pool.flavor.name, pool.resources) for pool in accepted]
    teams = list(Team.objects.select_related("department"))
    limits = nominal(teams)
    used = {shape.flavor for shape in shapes}
    return [
        *(projection.cohort(department.slug) for department in Department.objects.all()),
        *(
            projection.resource_flavor(projection.FlavorShape(row.name, row.node_selector, row.tolerations))
            for row in Flavor.objects.filter(cluster=cluster, name__in=used)
        ),
        *(
            projection.cluster_queue(
                team.slug,
                team.department.slug,
                shapes,
                {shape.key: limits.get((team.slug, shape.key), 0) for shape in shapes},
            )
            for team in teams
        ),
    ]
