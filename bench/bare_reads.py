"""The bare side of the pages and lists: the data of each answer by one SQL statement, as JSON.

It uses psycopg on the portal's own connection, and the standard library's json: no sign-in, permission or rule. What
fits on a GPU beside its current use cannot be computed in SQL, so ``free`` is what nobody holds.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.db import connection

PRICE = """
    (SELECT price.per_gpu_hour FROM costs_price price WHERE price.flavor_id = flavor.id AND price.valid_from <= now()
     ORDER BY price.valid_from DESC LIMIT 1)
"""
OFFERINGS = f"""
    WITH held AS (
        SELECT offering, sum(count) AS n FROM metering_usageinterval WHERE "end" IS NULL GROUP BY offering
    ), mine AS (
        SELECT row.offering_id, sum(row.count) AS n FROM allocations_allocation row
        JOIN tenants_project project ON project.id = row.project_id
        WHERE project.team_id = %(team)s AND row.ended_at IS NULL
          AND row.phase IN ('starting', 'active', 'leaving', 'releasing')
        GROUP BY row.offering_id
    )
    SELECT one.key, flavor.cluster_id AS cluster, flavor.name, flavor.product, flavor.architecture,
           flavor.memory_mib AS card_memory_mib, flavor.compute_capability, flavor.path,
           one.kind, one.profile, one.isolation, one.sharing, one.replicas,
           one.memory_mib, one.gpu_share_numerator, one.gpu_share_denominator, {PRICE} AS price,
           used.total - used.foreign - used.blocked AS total, coalesce(held.n, 0) AS held,
           used.total - used.foreign - used.blocked - coalesce(held.n, 0) AS free,
           coalesce(nominal.nominal, 0) AS "limit", coalesce(mine.n, 0) AS used
    FROM catalog_offering one
    JOIN catalog_flavor flavor ON flavor.id = one.flavor_id
    JOIN catalog_pool pool ON pool.id = one.pool_id
    LEFT JOIN catalog_pooluse used ON used.pool_id = pool.id
    LEFT JOIN held ON held.offering = one.key
    LEFT JOIN mine ON mine.offering_id = one.id
    LEFT JOIN limits_limit nominal ON nominal.pool_id = pool.id AND nominal.team_id = %(team)s
    WHERE flavor.accepted AND NOT flavor.hidden AND NOT one.hidden
    ORDER BY one.key
"""
ALLOCATIONS = f"""
    SELECT row.id, row.name, row.phase, row.outcome, row.reason, row.message, row.mode, one.key AS offering, row.count,
           project.slug AS project, team.slug AS team, project.namespace, person.username, row.priority, row.purpose,
           row.requeue, row.constraints, row.sharing, row.claim, one.isolation, row.recovered, row.created_at,
           row.starts_at, row.ends_at, row.held_at, row.ended_at, flavor.path, {PRICE} AS price,
           (SELECT json_agg(json_build_array(use.node, use.slot, use.device_uuid)) FROM metering_usageinterval use
            WHERE use.holder_id = row.id AND use."end" IS NULL AND use.node <> '') AS devices,
           (SELECT sum(use.count * extract(epoch FROM coalesce(use."end", now()) - use.start))
            FROM metering_usageinterval use WHERE use.holder_id = row.id) AS seconds,
           (SELECT json_agg(json_build_array(object.kind, object.namespace, object.name))
            FROM allocations_appliedobject object
            WHERE object.target = project.cluster_id || '/allocation:' || row.id) AS objects
    FROM allocations_allocation row
    JOIN tenants_project project ON project.id = row.project_id
    JOIN tenants_team team ON team.id = project.team_id
    JOIN catalog_offering one ON one.id = row.offering_id
    JOIN catalog_flavor flavor ON flavor.id = one.flavor_id
    JOIN tenants_user person ON person.id = row.requested_by_id
    {{where}}
    ORDER BY row.created_at DESC, row.id DESC LIMIT %(limit)s
"""
NEWEST = ALLOCATIONS.format(where="")
OWN = ALLOCATIONS.format(where="WHERE row.requested_by_id = %(person)s AND row.ended_at IS NULL")
COUNT = "SELECT count(*) AS rows FROM allocations_allocation"


def read(statement: str, values: Mapping[str, Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        columns = [column.name for column in cursor.description]
        return json.dumps([dict(zip(columns, row, strict=True)) for row in cursor.fetchall()], default=str)
