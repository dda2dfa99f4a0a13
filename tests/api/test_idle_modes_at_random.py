"""Random capacity, prices, quotas and use: every mode of idle adds up to the same, to the last digit, and with what is
held to the price of all GPUs.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor
from quotas.costs import bills, capacity_services, rollups, services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.cost_rows import COLUMNS
from quotas.costs.models import NodeCost
from quotas.costs.node_terms import Term
from quotas.costs.questions import IdleBy, IdleSplit
from quotas.metering.units import FoundUnit
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.idle import hold, sensing, set_quota
from tests.support.people import client, person
from tests.support.quotas import hour, used
from tests.support.sizes import size

pytestmark = pytest.mark.django_db
LENGTH = 30 * 60
"""Minutes of the ledger."""
MINUTE, MICROSECOND = timedelta(minutes=1), timedelta(microseconds=1)
SHARED = [f"share&idle_by={by}&idle_split={split}" for by, split in product(IdleBy, IdleSplit)]
KEYS = ("team", "department,team", "flavor", "cluster,flavor", "project", "member,node", "offering,team", "all")
AT_PRICES = ("cost", "idle_cost", "stranded_cost", "unavailable_cost", "unmanaged_cost", "variance")
OF_HOLDERS = ("gpu_hours", "cost", "total", "adjustment", "shared_cost")
Prices = dict[str, list[tuple[datetime, Fraction]]]


def at(minute: int) -> datetime:
    return hour(0) + minute * MINUTE


def span(random: Random) -> tuple[float, float]:
    """Return the hours of two random minutes."""
    first, last = sorted(random.sample(range(LENGTH), 2))
    return first / 60, last / 60


def some_ledger(random: Random) -> Prices:
    """Record eight l40s and two h100, some of which fail, and how three teams hold them; return their prices."""
    fleet()
    record({**RESOURCES, **GPUS}, 0)
    teams = sensing()
    prices: Prices = {"l40s": [(hour(0), Fraction("1.1"))], "h100": [(hour(0), Fraction("3.2"))]}
    with clock.frozen(hour(0)):
        for name, minute in product(prices, random.sample(range(1, LENGTH), 2)):
            amount = f"{random.random() * 5:.6f}"
            services.set_price(SYSTEM, name, amount, "EUR", at(minute))
            prices[name].append((at(minute), Fraction(amount)))
        subject = CostSubject(Flavor.objects.get(name="l40s"), Term.ON_DEMAND)
        capacity_services.set_node_cost(SYSTEM, subject, "9.7", NodeCost.Per.NODE, "aws", "EUR", hour(0))
        operator = person(platform_role="operator")
        bills.set_shared_cost(operator, "network", date(2026, 11, 1), "720", "weighted")
        bills.set_shared_cost(operator, "support", date(2026, 11, 1), "310", "even")
    for name in random.choices(sorted(teams), k=12):
        hold(name, random.randint(1, 3), *span(random))
    used(hour(span(random)[0]), None)
    for number in range(2):
        start, end = span(random)
        hold_gpu(f"gpu-{number}", start, end, team=random.choice(sorted(teams)), department="sensing")
        use_gpu_without_allocation(f"gpu-{number}", end, end + 1)
    for minute in sorted(random.sample(range(LENGTH), 6)):
        limits: dict[str, Any] = {"borrowing": random.choice([None, 2]), "lending": random.choice([None, 1])}
        set_quota(minute / 60, teams[random.choice(sorted(teams))], random.randint(0, 9), **limits)
    failed = random.choice(sorted(RESOURCES))
    record({failed: FoundUnit(4, random.randrange(4), "node_not_ready")}, random.randrange(LENGTH) / 60)
    return prices


def cost_of_all(prices: Prices, start: datetime, end: datetime) -> Fraction:
    """Return what all GPUs cost at their prices."""
    found = Fraction(0)
    for name, gpus in (("l40s", 8), ("h100", 2)):
        changes = sorted(prices[name])
        for (since, price), until in zip(changes, [*(one for one, _ in changes[1:]), end], strict=True):
            length = max(min(until, end) - max(since, start), timedelta(0))
            found += gpus * price * Fraction(length // MICROSECOND, 3_600_000_000)
    return found


def rows(auditor: APIClient, **query: str) -> Sequence[dict[str, Any]]:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    answer = auditor.get(f"/api/v1/costs?{text}&limit=1000")
    assert (answer.status_code, answer.json()["next"]) == (200, None), answer.content
    found: Sequence[dict[str, Any]] = answer.json()["results"]
    return found


def sums(found: Sequence[dict[str, Any]]) -> dict[str, Decimal]:
    return {name: sum((Decimal(row[name]) for row in found), Decimal(0)) for name in (*OF_HOLDERS, *COLUMNS.values())}


@pytest.mark.parametrize("seed", range(size(2, 4)))
def test_every_mode_of_idle_adds_up_to_the_same(seed: int) -> None:
    random = Random(seed)
    prices = some_ledger(random)
    rollups.roll_up(LOCAL, hour(0), hour(random.choice([0, 7, 24, 30])))
    auditor, idle = client(person(platform_role="auditor")), Decimal(0)
    for keys in random.sample(KEYS, 3):
        start, end = (at(minute) for minute in sorted(random.sample(range(LENGTH + 1), 2)))
        question = {
            "window": f"{start:%Y-%m-%dT%H:%M:%SZ},{end:%Y-%m-%dT%H:%M:%SZ}",
            "aggregate": keys,
            "accumulate": random.choice(["all", "day", "hour"]),
            "timezone": random.choice(["UTC", "Asia/Kolkata"]),
        }
        with clock.frozen(hour(31)):
            found = rows(auditor, **question, idle="separate")
            expected = sums(found)
            for mode in ("owner", *SHARED):
                assert sums(rows(auditor, **question, idle=mode)) == expected, (question, mode)
            hidden = sums(rows(auditor, **question, idle="hide"))
        assert hidden == {name: expected[name] if name in OF_HOLDERS else Decimal(0) for name in expected}
        idle += expected["idle_cost"]
        of_gpus = sum(expected[name] for name in AT_PRICES)
        assert abs(Fraction(of_gpus) - cost_of_all(prices, start, end)) <= Fraction(len(found) * len(AT_PRICES), 20_000)
    assert idle > 0
