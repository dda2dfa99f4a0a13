"""What every test may use: people and their clients."""

import pytest

from portal.tenants import services
from portal.tenants.models import Project, Team


@pytest.fixture
def team(db: None) -> Team:
    department = services.create_department("research", "Research")
    return services.create_team(department, "vision", "Vision")


@pytest.fixture
def other_team(team: Team) -> Team:
    return services.create_team(team.department, "language", "Language")


@pytest.fixture
def project(team: Team) -> Project:
    return services.create_project(team, "vision-train", "Vision training")
