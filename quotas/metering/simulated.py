"""Tells which part of the ledger is simulated: a demo's past that nobody recorded (``demo.simulated_history``).

Its rows are those whose evidence has KIND, and of foreign use those whose uid begins with UID_PREFIX. They are before
everything that is recorded, so the first interval of a cluster's capacity shows until when they are.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from portal.core.reading import read_rows

KIND = "simulated"
UID_PREFIX = "simulated-"
_FIRST_EVIDENCE = """
    SELECT slug, (
        SELECT source_start::text FROM metering_capacityinterval AS capacity
        WHERE capacity.cluster = cluster.slug ORDER BY start LIMIT 1
    ) AS evidence FROM clusters_cluster AS cluster ORDER BY slug
"""


def evidence(until: datetime, days: int, seed: int) -> dict[str, Any]:
    """Return the evidence of simulated rows: until when they are, and what they are drawn from."""
    return {"kind": KIND, "until": until.isoformat(), "days": days, "seed": seed}


def first_evidence() -> dict[str, Mapping[str, Any]]:
    """Return by cluster the evidence of its first interval of capacity, where that is simulated; one query."""
    found = {row.slug: json.loads(row.evidence or "{}") for row in read_rows(_FIRST_EVIDENCE)}
    return {slug: first for slug, first in found.items() if first.get("kind") == KIND}


def until(start: datetime) -> datetime | None:
    """Return until when what the ledgers have from ``start`` on is simulated; None if nothing of it is. One query."""
    ends = [datetime.fromisoformat(one["until"]) for one in first_evidence().values()]
    return max((end for end in ends if end > start), default=None)
