"""The navigation: where a reader is, said once."""

import re

import pytest
from django.urls import URLPattern, get_resolver

from frontend import navigation, urls

NAMES = ("home", "audit", "fleet", "request", "allocations", "costs", "limits", "teams")
PATHS = ["/" + re.sub("<[^>]*>", "x", str(each.pattern)) for each in urls.urlpatterns if isinstance(each, URLPattern)]


@pytest.mark.parametrize("path", PATHS)
def test_at_most_one_address_of_the_navigation_is_current(path: str) -> None:
    links = [navigation._link(path, name, name) for name in NAMES]
    assert sum(bool(link.current) for link in links) <= 1


def test_what_a_team_costs_is_below_costs() -> None:
    assert navigation._link("/teams/vision/costs", "costs", "Costs").current == "true"
    assert get_resolver().resolve("/teams/vision/costs").url_name == "team-cost"
