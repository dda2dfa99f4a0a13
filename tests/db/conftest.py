"""Fixtures of the database tests: pages over a small fleet, and two clusters with the same names."""

import pytest
from django.test import Client

from demo import prices
from portal.core import heartbeat
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Pool
from quotas.limits import services as limits
from tests.support.pages import browser_of
from tests.support.quotas import cluster
from tests.support.two_clusters import Twin, make_twins


@pytest.fixture
def fleet(team: Team) -> None:
    """Create eight l40s, of which the team may hold four."""
    cluster()
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="l40s/gpu"), 4)
    prices.price()
    heartbeat.beat("worker")
    heartbeat.beat("watcher")


@pytest.fixture
def browser(member: User) -> Client:
    return browser_of(member)


@pytest.fixture
def twins(team: Team, project: Project, member: User) -> dict[str, Twin]:
    return make_twins(team, project, member)
