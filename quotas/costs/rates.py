"""Reads the prices that were in force."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from quotas.costs.models import Price
from quotas.costs.rating import Rate


def by_flavor(flavors: Iterable[str] | None = None) -> dict[str, list[Rate]]:
    """Return prices by flavor name, each in order of time, in one query; of all flavors, or those given."""
    prices = Price.objects.order_by("valid_from")
    if flavors is not None:
        prices = prices.filter(flavor__name__in=set(flavors))
    found: dict[str, list[Rate]] = defaultdict(list)
    for flavor, valid_from, amount in prices.values_list("flavor__name", "valid_from", "per_gpu_hour"):
        found[flavor].append(Rate(valid_from, Fraction(amount)))
    return dict(found)
