"""The navigation: where a reader is, said once."""

import re

import pytest
from django.urls import URLPattern, get_resolver

from frontend import navigation, urls
from portal.tenants.models import PlatformRole, Role, User

PATHS = ["/" + re.sub("<[^>]*>", "x", str(each.pattern)) for each in urls.urlpatterns if isinstance(each, URLPattern)]
ROLES = pytest.mark.parametrize("role", ["", PlatformRole.OPERATOR, PlatformRole.AUDITOR])


def current(path: str, role: str, roles: set[str]) -> tuple[list[str], list[str]]:
    """Return the words of what is current in the navigation and in its section."""
    found = navigation.links(User(platform_role=role), roles, path)
    return [link.word for link in found[0] if link.current], [link.word for link in found[1] if link.current]


@ROLES
@pytest.mark.parametrize("path", PATHS)
def test_at_most_one_address_of_each_navigation_is_current(path: str, role: str) -> None:
    of_navigation, of_section = current(path, role, {Role.LEAD})
    assert len(of_navigation) <= 1
    assert len(of_section) <= len(of_navigation)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/teams/vision/costs", (["Costs"], ["Costs"])),
        ("/costs/savings", (["Usage"], ["Waste"])),
        ("/bills/enter", (["Costs"], ["Bills"])),
        ("/audit", (["Admin"], ["Audit log"])),
        ("/projects/vision-train", (["Admin"], ["Organization"])),
        ("/limits/changes", (["Limits"], [])),
    ],
)
def test_an_operator_is_in_one_section_and_on_one_of_its_pages(path: str, words: tuple[list[str], list[str]]) -> None:
    assert current(path, PlatformRole.OPERATOR, set()) == words


def test_the_pages_of_a_team_are_below_teams_for_its_lead() -> None:
    assert current("/teams/vision", "", {Role.LEAD}) == (["Teams"], [])


def test_only_platform_staff_has_the_section_admin() -> None:
    for role in ("", PlatformRole.OPERATOR, PlatformRole.AUDITOR):
        words = [link.word for link in navigation.links(User(platform_role=role), {Role.LEAD}, "/")[0]]
        assert ("Admin" in words) == bool(role)


def test_what_a_team_costs_is_a_page_of_costs() -> None:
    assert get_resolver().resolve("/teams/vision/costs").url_name == "team-cost"
