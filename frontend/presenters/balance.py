"""The proof of the ledger's balance: since when it is balanced, and the rows that fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quotas.metering import proofs
from quotas.metering.models import BalanceProof
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
    """``left`` is how many rows fail besides those shown, in the newest MAX_HOURS hours that are not balanced."""

    summaries: Sequence[ProofSummary]
    rows: Sequence[FailingRow]
    left: int


def balance() -> Balance:
    """Return what was proved of each cluster, and the newest failing rows."""
    summaries = proofs.summaries()
    hours: Sequence[BalanceProof] = ()
    if any(one.failed for one in summaries):
        hours = proofs.failing(MAX_HOURS)
    rows = [FailingRow(one.cluster_id, one.hour, failure) for one in hours for failure in one.failures]
    shown = rows[:MAX_ROWS]
    return Balance(summaries, shown, sum(one.failure_count for one in hours) - len(shown))
