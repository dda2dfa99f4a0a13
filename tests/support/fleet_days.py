"""Fills a database with days of a fleet of h100 that DRA names, and its roll-ups, by SQL: nodes of eight GPUs.

Each GPU is held for four hours of six by one of 40 teams, and idle for two. The statements are no part of the portal,
so that a large fleet takes seconds; pages compare what they read from the ledger with these roll-ups.
"""

from datetime import datetime
from typing import Any

from django.db import connection

from quotas.metering.hours import DAY

_CAPACITY = """
    INSERT INTO metering_capacityinterval (
        cluster, node, kind, name, uuid, start, estimated_start, estimated_end, inferred, count, available, state,
        labels, flavor, gpus_numerator, gpus_denominator, offered, source_start, recorded_at)
    SELECT 'local', 'node-' || lpad(node::text, 4, '0'), 'gpu', 'gpu-' || gpu, 'GPU-' || node || '-' || gpu, %(start)s,
           FALSE, FALSE, FALSE, 1, 1, '', '{}', 'h100', 1, 1, TRUE, '{}', %(start)s
    FROM generate_series(0, %(nodes)s - 1) AS node, generate_series(0, 7) AS gpu
"""
# A GPU's turn is its number modulo six: it is idle in that hour and the one before it.
_USAGE = """
    INSERT INTO metering_usageinterval (
        key, holder_id, slot, start, "end", estimated_start, estimated_end, gpu_share_numerator, gpu_share_denominator,
        count, unused, overtime, uncharged, offering, flavor, kind, cluster, node, device_uuid, department, team,
        project, member, namespace, source_start, source_end, recorded_at)
    SELECT gen_random_uuid(), md5(node || '/' || gpu || '/' || turn)::uuid,
           'local/node-' || lpad(node::text, 4, '0') || '/gpu-' || gpu,
           greatest(begins, %(start)s), least(begins + interval '4 hours', %(end)s),
           FALSE, FALSE, 1, 1, 1, FALSE, FALSE, FALSE, 'h100/whole', 'h100', 'whole', 'local',
           'node-' || lpad(node::text, 4, '0'), '', 'research',
           'team-' || (node + gpu) %% 40, 'project-' || (node + gpu) %% 40, 'ada', 'project-' || (node + gpu) %% 40,
           '{}', '{}', begins
    FROM generate_series(0, %(nodes)s - 1) AS node, generate_series(0, 7) AS gpu,
         generate_series(-1, %(hours)s / 6) AS turn
    CROSS JOIN LATERAL (
        SELECT %(start)s::timestamptz + (6 * turn + 1 + (node + gpu) %% 6) * interval '1 hour' AS begins
    ) AS of_turn
    WHERE begins < %(end)s AND begins + interval '4 hours' > %(start)s
"""
_ACCOUNTS = """
    INSERT INTO metering_accounthour (
        cluster, start, flavor, category, offering, department, team, project, price, denominator, amount, is_gpu, node,
        name, holder_id, kind, member, namespace, owner_kind)
    SELECT 'local', %(start)s::timestamptz + hour * interval '1 hour', 'h100',
           CASE WHEN is_held THEN 'held' ELSE 'idle' END, CASE WHEN is_held THEN 'h100/whole' ELSE '' END,
           CASE WHEN is_held THEN 'research' ELSE '' END,
           CASE WHEN is_held THEN 'team-' || (node + gpu) %% 40 ELSE '' END,
           CASE WHEN is_held THEN 'project-' || (node + gpu) %% 40 ELSE '' END, %(price)s, 1, 3600000000, TRUE,
           'node-' || lpad(node::text, 4, '0'), 'gpu-' || gpu,
           CASE WHEN is_held THEN md5(node || '/' || gpu || '/' || floor(since / 6.0)::int)::uuid END,
           'whole', 'ada', '', ''
    FROM generate_series(0, %(nodes)s - 1) AS node, generate_series(0, 7) AS gpu,
         generate_series(0, %(hours)s - 1) AS hour
    CROSS JOIN LATERAL (SELECT hour - 1 - (node + gpu) %% 6 AS since) AS of_turn
    CROSS JOIN LATERAL (SELECT (since + 6) %% 6 < 4 AS is_held) AS of_hour
"""
_HOURS = """
    INSERT INTO metering_hourtotal
        (cluster, start, flavor, category, offering, department, team, project, price, denominator, amount)
    SELECT cluster, start, flavor, category, offering, department, team, project, price, denominator, sum(amount)
    FROM metering_accounthour GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
"""
_ADDED_UP = """
    INSERT INTO metering_{period}total
        (cluster, start, flavor, category, offering, department, team, project, price, denominator, amount)
    SELECT cluster, date_trunc('{period}', start, 'UTC'), flavor, category, offering, department, team, project, price,
           denominator, sum(amount)
    FROM metering_{part}total GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
"""
_DAYS, _MONTHS = _ADDED_UP.format(period="day", part="hour"), _ADDED_UP.format(period="month", part="day")
_ROLLED_UP = """
    INSERT INTO metering_rolleduphour (cluster, hour, rolled_up_at)
    SELECT 'local', %(start)s::timestamptz + hour * interval '1 hour', %(end)s
    FROM generate_series(0, %(hours)s - 1) AS hour
"""


def fill(start: datetime, days: int, nodes: int, price: str) -> None:
    """Make so many days from ``start``, a midnight UTC, of so many nodes; a GPU-hour costs ``price``. No other use of
    these days may be in the database.
    """
    values: dict[str, Any] = {
        "start": start,
        "end": start + days * DAY,
        "hours": days * 24,
        "nodes": nodes,
        "price": price,
    }
    with connection.cursor() as cursor:
        for statement in (_CAPACITY, _USAGE, _ACCOUNTS, _HOURS, _DAYS, _MONTHS, _ROLLED_UP):
            cursor.execute(statement, values)
        cursor.execute(
            "ANALYZE metering_capacityinterval, metering_usageinterval, metering_accounthour, metering_hourtotal"
        )
