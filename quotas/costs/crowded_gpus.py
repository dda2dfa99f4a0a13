"""Sums what is charged of GPUs whose uses take more than one GPU at some moment, such as MIG slices of a mixed layout.

The query returns their uses one by one, cut like all others, and `gpu_shares` says what each is charged. All other
uses are charged their weight, so the database adds them up.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from quotas.metering import gpu_shares
from quotas.metering.gpu_shares import Share
from quotas.metering.parts import MICROSECOND

# Of every interval that has a GPU and is in the rest of a window (`quotas.costs.ledger`). Weights have 60 places; a sum
# above 1 differs from it by more than 1e-50, unless more than five shares with 31 bits have no divisor in common.
CROWDING = """
    on_gpu AS MATERIALIZED (
        SELECT total.key, total.cluster, total.flavor, total.node,
               split_part(split_part(total.slot, '/', 3), '-mig-', 1) AS gpu,
               greatest(total.start, rest.t0) AS t0, least(total."end", rest.t1) AS t1,
               total.count * total.gpu_share_numerator::numeric(100, 60) / total.gpu_share_denominator AS weight
        FROM used_rest AS rest CROSS JOIN LATERAL (
            SELECT * FROM metering_usageinterval AS total
            WHERE total.cluster = rest.cluster AND total.start < rest.t1
                  AND (total."end" IS NULL OR total."end" > rest.t0)
            OFFSET 0
        ) AS total
        WHERE total.node <> '' AND split_part(total.slot, '/', 2) = total.node
    ),
    crowded AS (
        SELECT DISTINCT cluster, flavor, node, gpu FROM (
            SELECT cluster, flavor, node, gpu,
                   sum(weight) OVER (PARTITION BY cluster, flavor, node, gpu ORDER BY at) AS weight
            FROM (
                SELECT cluster, flavor, node, gpu, t0 AS at, weight FROM on_gpu
                UNION ALL SELECT cluster, flavor, node, gpu, t1, -weight FROM on_gpu
            ) AS change
        ) AS moment WHERE weight > 1 + 1e-50
    ),
    crowding AS MATERIALIZED (SELECT * FROM on_gpu JOIN crowded USING (cluster, flavor, node, gpu)),
    single_use AS (
        SELECT total.*, crowding.t0, crowding.t1, gpu, (SELECT moments FROM cuts) AS cuts
        FROM crowding JOIN metering_usageinterval AS total USING (key)
    )
"""
SINGLE_USES = """
    UNION ALL
    SELECT cut, NULL, NULL,
           jsonb_build_array(
               jsonb_build_array(total.cluster, total.flavor, total.node, gpu), total.count * total.gpu_share_numerator,
               total.gpu_share_denominator, total.start, total.slot, total.key, {begin}, {until}, TRUE{conditions}
           )::text, total.flavor, total.uncharged, total.offering, {share}{columns}
    FROM single_use AS total {cut}
"""


class Row(NamedTuple):
    """A row of `ledger.sums`: of the roll-ups by step, of the ledger by cut, which has no price yet and what the price
    depends on, from ``flavor`` to ``share``, what a slice takes of a GPU. Numbers are text.

    A single use has no denominator, and in place of the amount what it is, as JSON.
    """

    step: int
    denominator: Any
    price: Any
    amount: Any
    flavor: Any
    uncharged: Any
    offering: Any
    share: Any
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Piece:
    """A piece of a use, with its row. ``is_kept`` is whether the filter of the query keeps it."""

    start: datetime
    end: datetime
    weight: Fraction
    rank: tuple[bool, datetime, str, str]
    row: Row
    is_kept: bool


def charged(fetched: Sequence[Row]) -> Sequence[Row]:
    """Return these rows of the query, with rows of what single uses are charged in place of theirs."""
    single = [row for row in fetched if row.denominator is None]
    if not single:
        return fetched
    gpus: dict[tuple[str, ...], list[_Piece]] = defaultdict(list)
    for row in single:
        gpu, *values = json.loads(row.amount)
        gpus[tuple(gpu)].append(_piece(row, *values))
    shares = (share for pieces in gpus.values() for share in _of_gpu(pieces))
    return [
        *(row for row in fetched if row.denominator is not None),
        *(_row(share) for share in shares if share.use.is_kept),
    ]


def _of_gpu(pieces: Sequence[_Piece]) -> Sequence[Share[_Piece]]:
    return gpu_shares.of_gpu(pieces, min(piece.start for piece in pieces), max(piece.end for piece in pieces))


def _row(share: Share[_Piece]) -> Row:
    amount = share.gpus.numerator * ((share.end - share.start) // MICROSECOND)
    return share.use.row._replace(denominator=str(share.gpus.denominator), amount=str(amount))


def _piece(
    row: Row,
    numerator: int,
    denominator: int,
    began: str,
    slot: str,
    key: str,
    start: str,
    end: str,
    is_kept: bool,
) -> _Piece:
    rank = gpu_shares.rank(datetime.fromisoformat(began), slot, f"{key}/{start}")
    weight = Fraction(numerator, denominator)
    return _Piece(datetime.fromisoformat(start), datetime.fromisoformat(end), weight, rank, row, is_kept)
