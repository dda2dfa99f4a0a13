"""What the pages of costs say of whom, which months they offer, and which steps a timeline has."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.http import QueryDict

from frontend.presenters import costs_filters, costs_form
from frontend.presenters.costs_address import CostsAddress
from frontend.views.cost_assets import _edges
from quotas.costs import filter_grammar
from quotas.costs.calendar import Calendar
from quotas.costs.rating import Window


@pytest.mark.parametrize(
    ("where", "sees_all", "title"),
    [
        ("", True, "Costs of all teams by project"),
        ("", False, "Costs of your teams by project"),
        ('team:"vision"', True, "Costs of team vision by project"),
        ('team:"vision"+project:"dev"', False, "Costs of project dev by project"),
        ('member:"ada"', False, "Your costs by project"),
        ('member:"grace"', True, "Costs of grace by project"),
        ('team!:"vision"', True, "Costs of all teams by project"),
    ],
)
def test_a_title_says_of_whom_costs_are(where: str, sees_all: bool, title: str) -> None:
    assert costs_filters.title(filter_grammar.parse(where), "ada", "project", sees_all=sees_all) == title


def test_a_total_is_by_nothing() -> None:
    assert costs_filters.title(filter_grammar.parse(""), "ada", "", sees_all=True) == "Costs of all teams"


def test_the_last_months_can_be_chosen_by_name() -> None:
    address = CostsAddress({"window": "2026-09-01,2026-10-01", "aggregate": "team"})
    given = QueryDict("")
    when = costs_form.fields(address, given, date(2026, 11, 28), sees_all=False, default_idle="hide")["when"]
    assert when.options[when.value] == "September 2026"
    assert when.options["2025-12-01,2026-01-01"] == "December 2025"


def test_steps_of_a_week_have_four_hours_and_end_at_midnight_where_clocks_change_too() -> None:
    berlin = Calendar(ZoneInfo("Europe/Berlin"))
    start = datetime(2026, 10, 20, 22, tzinfo=UTC)  # midnight of the 21st
    edges = _edges(Window(start, start + timedelta(days=7, hours=1)), berlin)
    midnights = [edge for edge in edges if edge.astimezone(berlin.zone).hour == 0]
    assert len(midnights) == 8
    assert max(after - before for before, after in pairwise(edges)) == timedelta(hours=4)
    assert len(_edges(Window(start, start + timedelta(days=2)), berlin)) == 49
