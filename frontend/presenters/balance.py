"""The proof of the ledger's balance: since when it is balanced, and the rows that fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quotas.metering import clock_skew, proofs
from quotas.metering.models import BalanceProof, ClockSkew
from quotas.metering.proofs import ProofSummary

MAX_HOURS = 24
MAX_ROWS = 20


@dataclass(frozen=True)
class FailingRow:
    """A failing row of an hour; ``failure`` has the fields of ``quotas.metering.balance.Failure``."""

    cluster: str
    hour: datetime
    failure: dict[str, Any]


@dataclass(frozen=True)
class Balance:
    """``left`` is how many rows fail besides those shown, in the newest MAX_HOURS hours that are not balanced.

    ``skews`` are sentences.
    """

    summaries: Sequence[ProofSummary]
    rows: Sequence[FailingRow]
    left: int
    skews: Sequence[str]


def balance() -> Balance:
    """Return what was proved of each cluster, and the newest failing rows."""
    summaries = proofs.summaries()
    hours: Sequence[BalanceProof] = ()
    if any(one.failed for one in summaries):
        hours = proofs.failing(MAX_HOURS)
    rows = [FailingRow(one.cluster_id, one.hour, failure) for one in hours for failure in one.failures]
    shown = rows[:MAX_ROWS]
    left = sum(one.failure_count for one in hours) - len(shown)
    return Balance(summaries, shown, left, list(map(_skew, clock_skew.current())))


def _skew(one: ClockSkew) -> str:
    """Return ``The clock of cluster a is 1.20 s ahead of its watcher's (± 0.05 s).``"""
    side = "behind" if one.seconds < 0 else "ahead of"
    return (
        f"The clock of cluster {one.cluster_id} is {abs(one.seconds):.2f} s {side} its watcher's (± {one.error:.2f} s)."
    )
