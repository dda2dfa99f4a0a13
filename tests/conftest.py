"""Fixtures for all tests: two teams, a project and a member; unit tests have no network.

Every answer that the REST API gives in the test's own process is compared with the schema.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.test import override_settings
from hypothesis import HealthCheck, settings

from portal import health
from portal.core import threads
from portal.http import counters, early_refusals
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from tests import minutes
from tests.support import api_contract, sizes
from tests.support.people import person

UNIT = Path(__file__).parent / "unit"
CHEAP = {
    "PASSWORD_HASHERS": ["tests.support.cheap_hasher.CheapHasher"],
    "WHITENOISE_AUTOREFRESH": True,  # else each new client reads the folders of static files
}

# How long an example takes is the machine's business, and says nothing of the rule.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--compare", action="store_true", help="compare times with the attack and without it")
    parser.addoption("--fuzz-minutes", metavar="M", default="0", help="how long each role is fuzzed; 0: briefly")
    parser.addoption("--fuzz-seed", metavar="S", default="14", help="what the requests of fuzzing are drawn from")
    parser.addoption("--kills", metavar="K", default="8", help="how many kills there are in these minutes")
    parser.addoption("--long", action="store_true", help="draw all random cases, as tests/support/sizes.py says")
    parser.addoption("--minutes", metavar="M", default="0", help="how long a member attacks, or processes are killed")
    parser.addoption("--part", metavar="NAME", help="record how long each test took: tests/minutes.py")
    parser.addoption("--seed", metavar="S", default="11", help="what operations, attacks and kills are drawn from")


def pytest_configure(config: pytest.Config) -> None:
    sizes.is_long = config.getoption("long")
    if (part := config.getoption("part")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(minutes.Recorder(part))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if UNIT in item.path.parents:
            item.add_marker(pytest.mark.disable_socket)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Leave the databases to their server, which ends with the tests: the last one may have a request under way."""
    return True


@pytest.fixture(scope="session", autouse=True)
def watched() -> Iterator[None]:
    """Have every answer of the REST API compared with the schema, in clients and in the live server; no test sees what
    another left in the process.
    """
    middleware = ["tests.support.api_contract.watch", *django_settings.MIDDLEWARE]
    threads.keep_what_is_loaded()
    health.LOOK_EVERY_S = 0
    with override_settings(MIDDLEWARE=middleware, FLEET_MAX_AGE_S=0, **CHEAP):
        yield


@pytest.fixture(scope="session")
def live_server(watched: None, live_server: Any) -> Any:
    """Return pytest-django's live server, which loads its middleware when it starts: once answers are watched."""
    return live_server


@pytest.fixture(autouse=True)
def answers_as_described() -> Iterator[None]:
    """Fail a test in which an answer was not as the schema describes it."""
    found: list[str] = []
    api_contract.differences = found
    yield
    if found:
        pytest.fail("\n".join(dict.fromkeys(found)), pytrace=False)


@pytest.fixture(autouse=True)
def own_counters() -> Iterator[None]:
    """Count a test's requests apart from those of the tests before it, which came from the same address."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "PREFIX", f"gpu-portal:count:{uuid4().hex}")
        patch.setattr(early_refusals, "_refusals", {})
        yield


@pytest.fixture
def team(db: None) -> Team:
    department = services.create_department(SYSTEM, "research", "Research")
    return services.create_team(SYSTEM, department, "vision", "Vision")


@pytest.fixture
def other_team(team: Team) -> Team:
    return services.create_team(SYSTEM, team.department, "language", "Language")


@pytest.fixture
def project(team: Team) -> Project:
    return services.create_project(SYSTEM, team, "vision-train", "Vision training")


@pytest.fixture
def member(team: Team) -> User:
    return person(team)
