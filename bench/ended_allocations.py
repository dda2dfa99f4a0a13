"""Inserts ended allocations by SQL, each with its interval of usage and its timeline, in the past 90 days.

The statements are no part of the portal. They run as the owner of the tables. The hours count as rolled up, so that
the portal does not roll up the past while it is measured.
"""

import os
from collections.abc import Sequence

import psycopg

from portal.clusters import registry
from portal.tenants.models import Project
from quotas.catalog.models import Offering

BATCH = 100_000
DAYS = 90

_MADE = """
    CREATE TEMPORARY TABLE made ON COMMIT DROP AS
    SELECT gen_random_uuid() AS id, n, one.id AS project, one.slug, one.namespace, team.slug AS team,
           department.slug AS department, person.id AS person, person.username,
           now() - interval '1 hour' - %(days)s * interval '1 day' * (1 - n / %(all)s::float) AS begins
    FROM generate_series(%(first)s, %(last)s - 1) AS n
    JOIN unnest(%(projects)s::bigint[], %(people)s::bigint[]) WITH ORDINALITY AS owner (project, person, place)
        ON place = 1 + n %% %(owners)s
    JOIN tenants_project AS one ON one.id = owner.project
    JOIN tenants_team AS team ON team.id = one.team_id
    JOIN tenants_department AS department ON department.id = team.department_id
    JOIN tenants_user AS person ON person.id = owner.person
"""
_ALLOCATIONS = """
    INSERT INTO allocations_allocation (
        id, name, number, project_id, offering_id, requested_by_id, mode, count, constraints, sharing, priority,
        purpose, requeue, created_at, ends_at, held_before, desired, ending, start_failures, needs_attention,
        device_affinity, recovered, phase, phase_since, reason, message, held_at, ended_at, outcome)
    SELECT id, 'ended-' || n, n %% 250, project, %(offering)s, person, 'hold', 1, '{}', '{}', 'normal', '', true,
           begins, begins + interval '30 minutes', interval '29 minutes', 'released', 'person', 0, false, '{}', false,
           'ended', begins + interval '30 minutes', 'released', 'Released.', begins + interval '1 minute',
           begins + interval '30 minutes', 'released'
    FROM made
"""
_TRANSITIONS = """
    INSERT INTO allocations_transition (
        allocation_id, at, recorded_at, type, from_phase, to_phase, reason, message, actor, evidence)
    SELECT id, begins + after, begins + after, 'phase', before, next, '', '', 'portal', '{}'
    FROM made CROSS JOIN (VALUES ('', 'queued', interval '0'), ('queued', 'active', interval '1 minute'),
                                 ('active', 'ended', interval '30 minutes')) AS step (before, next, after)
"""
_INTERVALS = """
    INSERT INTO metering_usageinterval (
        key, holder_id, slot, start, "end", estimated_start, estimated_end, gpu_share_numerator, gpu_share_denominator,
        count, unused, overtime, uncharged, offering, flavor, kind, cluster, node, device_uuid, department, team,
        project, member, namespace, source_start, source_end, recorded_at)
    SELECT gen_random_uuid(), id, id || '/' || %(flavor)s, begins + interval '1 minute',
           begins + interval '30 minutes', false, false, %(numerator)s, %(denominator)s, 1, false, false, false,
           %(key)s, %(flavor)s, %(kind)s, %(cluster)s, '', '', department, team, slug, username, namespace, '{}', '{}',
           begins
    FROM made
"""
_NO_FOREIGN_KEYS = "SET LOCAL session_replication_role = replica"
"""The rows refer to rows that exist; to check each of them would take longer than to insert them."""
_ROLLED_UP = """
    INSERT INTO metering_rolleduphour (cluster, hour, rolled_up_at)
    SELECT %(cluster)s, hour, now()
    FROM generate_series(date_trunc('hour', now()) - (%(days)s + 1) * interval '1 day', date_trunc('hour', now()) -
                         interval '1 hour', interval '1 hour') AS hour
    ON CONFLICT DO NOTHING
"""
_STATEMENTS = (_MADE, _ALLOCATIONS, _TRANSITIONS, _INTERVALS)
_TABLES = ("allocations_allocation", "allocations_transition", "metering_usageinterval", "metering_rolleduphour")


def insert(owners: Sequence[tuple[Project, int]], offering: Offering, first: int, last: int, total: int) -> None:
    """Insert the ended allocations with these numbers, of ``total``, of the owners (project, person's id) in turn."""
    values = {
        "projects": [project.pk for project, _ in owners],
        "people": [person for _, person in owners],
        "owners": len(owners),
        "offering": offering.pk,
        "key": offering.key,
        "kind": offering.kind,
        "flavor": offering.flavor.name,
        "numerator": offering.gpu_share.numerator,
        "denominator": offering.gpu_share.denominator,
        "cluster": registry.own(),
        "all": total,
        "days": DAYS,
    }
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as connection:
        connection.execute(_ROLLED_UP.encode(), values)
        connection.commit()
        for begin in range(first, last, BATCH):
            connection.execute(_NO_FOREIGN_KEYS.encode())
            for statement in _STATEMENTS:
                connection.execute(statement.encode(), {**values, "first": begin, "last": min(begin + BATCH, last)})
            connection.commit()
        for table in _TABLES:
            connection.execute(f"ANALYZE {table}".encode())
