"""Random use for minutes, with random kills of watcher, worker, PostgreSQL and API server: the ledger is right.

    python -m tests.stack tests/faults/test_random_kills.py --minutes 20 --kills 50 --seed 3

Afterwards the hours are balanced, the ledger has open what is held, and as many seconds are billed as an observer of
its own saw: a bound that was watched is that of the hold, and an estimated one is off by less than an outage hid.
"""

import time
from collections import Counter
from datetime import datetime
from random import Random

import pytest
from django.db import InterfaceError, OperationalError, connection

from allocations.reconcile.metering import open_intervals
from deploy.local.runner import Local
from portal.clusters import registry
from portal.core import clock
from portal.core.errors import Refused, Retryable
from quotas.metering import balance
from quotas.metering.hours import HOUR
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually
from tests.support.faults import judge, outages
from tests.support.faults.crowd import Crowd
from tests.support.faults.outages import Bound, Outages
from tests.support.faults.witness import Witness

pytestmark = pytest.mark.faults
KILLED = ("watcher", "worker", "postgres", "kube-apiserver")
LIVE = 60
"""How many allocations there are at most."""
RIGHT_WITHIN_S = 240.0


def test_after_random_kills_the_ledger_is_balanced_and_bills_what_was_held(
    pytestconfig: pytest.Config, local: Local, crowd: Crowd, witness: Witness, kubectl: Kubectl, figures: list[str]
) -> None:
    minutes, kills = float(pytestconfig.getoption("minutes")), int(pytestconfig.getoption("kills"))
    if not minutes:
        pytest.skip("takes minutes: give --minutes, and --kills")
    random, killed, began = Random(int(pytestconfig.getoption("seed"))), Outages(local), clock.now()
    first = time.monotonic()
    for at in sorted(random.uniform(0, minutes * 60) for _ in range(kills)):
        use(crowd, random, until=first + at)
        killed.kill(random.choice(KILLED))
    use(crowd, random, until=first + minutes * 60)
    killed.wait()
    eventually(lambda: is_right(crowd, kubectl), AssertionError, within_s=RIGHT_WITHIN_S, every_s=1)
    hidden = killed.hidden()
    longest = max((end - start for start, end in hidden), default=0.0)
    compared, wrong = compare(crowd, witness, hidden)
    wrong += unbalanced(began)
    watched, guessed = ([one for one in compared if one.estimated == it] for it in (False, True))
    figures += [
        f"killed: {dict(Counter(one.process for one in killed.all))}, longest without a watch {longest:.0f} s",
        f"{len(watched)} watched bounds, at most {largest(watched):.1f} s off",
        f"{len(guessed)} estimated bounds, at most {largest(guessed):.1f} s off",
    ]
    assert compared
    assert not wrong, f"{len(wrong)} findings:\n" + "\n".join(wrong)


def use(crowd: Crowd, random: Random, until: float) -> None:
    """Request and release slices at random; what PostgreSQL loses by a kill is not repeated."""
    while time.monotonic() < until:
        try:
            live = crowd.live()
            if len(live) < LIVE and random.random() < 0.6:
                crowd.request_slices(random.randrange(1, 5))
            else:
                crowd.release(random.sample(live, min(len(live), random.randrange(1, 5))))
        except (OperationalError, InterfaceError):
            connection.close()
        except (Refused, Retryable):
            pass
        time.sleep(max(0.0, min(random.uniform(0.2, 2), until - time.monotonic())))


def is_right(crowd: Crowd, kubectl: Kubectl) -> bool:
    wrong = [
        *judge.findings(crowd.projects, kubectl),
        *(one.message for one in open_intervals.differences(registry.own())),
    ]
    assert not wrong, f"{len(wrong)} findings: {'; '.join(wrong[:10])}"
    return True


def compare(crowd: Crowd, witness: Witness, hidden: list[tuple[float, float]]) -> tuple[list[Bound], list[str]]:
    """Return the bounds of all holds that were compared, and what is wrong with them."""
    compared, wrong, now = list[Bound](), list[str](), clock.now().timestamp()
    for slot, intervals, holds in judge.bills(crowd.projects, witness):
        found, words = outages.compare(intervals, holds, hidden, now)
        compared += found
        evidence = f"billed {'; '.join(map(judge.told, intervals))}; seen {holds}"
        wrong += [f"{slot.namespace}/{slot.allocation} {slot.device}: {one}; {evidence}" for one in words]
    return compared, wrong


def largest(compared: list[Bound]) -> float:
    return max((abs(one.error_s) for one in compared), default=0.0)


def unbalanced(began: datetime) -> list[str]:
    """Return what fails of each hour since then, the present one included."""
    hour, found = began.replace(minute=0, second=0, microsecond=0), list[str]()
    while hour <= clock.now():
        found += [one.message for one in balance.of_hour(registry.own(), hour).failures]
        hour += HOUR
    return found
