"""Compares the roll-up of an hour with the capacity that the database sums from the ledger."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from quotas.metering import ledger_sums
from quotas.metering.accounts import AccountKey
from quotas.metering.balance import Check, Failure, failure, hours_text, title
from quotas.metering.hours import HOUR
from quotas.metering.models import AccountHour, DirtyHour, RolledUpHour
from quotas.metering.parts import MICROSECONDS_PER_HOUR

ZERO = Fraction(0)


def differences(cluster: str, hour: datetime) -> Iterator[Failure]:
    """Yield the accounts whose roll-up does not add up to their capacity; none while the hour is not rolled up, or has
    changed since.
    """
    of_hour = {"cluster": cluster, "hour": hour}
    if not RolledUpHour.objects.filter(**of_hour).exists() or DirtyHour.objects.filter(**of_hour).exists():
        return
    rolled_up: dict[AccountKey, Fraction] = defaultdict(Fraction)
    rows = AccountHour.objects.filter(cluster=cluster, start=hour).order_by()
    for flavor, is_gpu, node, name, denominator, amount in rows.values_list(
        "flavor", "is_gpu", "node", "name", "denominator", "amount"
    ):
        key = AccountKey(cluster, flavor, node if is_gpu else "", name)
        rolled_up[key] += Fraction(amount) / Fraction(denominator) / MICROSECONDS_PER_HOUR
    capacity = ledger_sums.capacity(cluster, hour, hour + HOUR)
    for key in sorted(rolled_up.keys() | capacity.keys()):
        if capacity.get(key, ZERO) != rolled_up.get(key, ZERO):
            expected, there = hours_text(capacity.get(key, ZERO)), hours_text(rolled_up.get(key, ZERO))
            words = f"The roll-up of {title(key)} has {there} GPU-hours; its capacity was {expected}."
            yield failure(Check.ROLLUP_EQUALS_CAPACITY, key, expected, there, words)
