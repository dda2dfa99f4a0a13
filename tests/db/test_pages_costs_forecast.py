"""The forecast of a view of costs, which its page loads after it is shown; and what table and chart read."""

import re
from datetime import timedelta
from html import escape, unescape

import pytest

from portal.core import clock
from tests.support.page_tables import figures
from tests.support.pages import text
from tests.support.people import client
from tests.support.quotas import hour, used
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db
WINDOW = "2026-11-02T00:00:00Z,2026-11-09T00:00:00Z"


def test_the_forecast_is_loaded_after_the_page_and_is_that_of_rest(fleet, member, project, browser):
    now = clock.now().replace(hour=12)
    for day in range(1, 21):
        used(now - timedelta(days=day, hours=3), now - timedelta(days=day), member=member.username)
    with clock.frozen(now):
        for view in ("filter=project:vision-train", "filter=kind:whole"):
            page = text(browser.get(f"/costs?window=month&{view}"))
            [later] = map(unescape, re.findall(r'id="tile-forecast" hx-get="([^"]*)"', page))
            assert f'<a href="{escape(later)}">Show the forecast</a>' in page
            assert figures(page)["forecast"].text == "–"
            rest = client(member).get(f"/api/v1/costs/forecast?{view}").json()
            for shown in (browser.get(later), browser.get(later, headers={"HX-Request": "true"})):
                assert figures(text(shown))["forecast"].value == rest["total"]
        assert text(shown).startswith('<div class="card" id="tile-forecast">')
        assert "forecast" not in figures(text(browser.get("/costs?window=lastmonth")))


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("window=lastmonth", "a period that has begun and has not ended"),
        ("window=month&cost=hourly", "not for a rate"),
        ("window=month", "days of history, 14 are needed"),
    ],
)
def test_a_view_without_a_forecast_says_why(fleet, browser, view, words):
    assert words in text(browser.get(f"/costs/forecast?{view}"))


def test_a_forecast_of_a_question_that_cannot_be_read_is_refused_with_its_field(fleet, browser):
    answer = browser.get("/costs/forecast?window=yesterdy")
    assert answer.status_code == 400
    assert "yesterdy" in text(answer)


@pytest.mark.parametrize("aggregate", ["project", "allocation,project"])
def test_the_table_and_its_chart_read_the_usage_once(fleet, browser, aggregate):
    for number in range(210):
        used(hour(number % 5), hour(number % 5 + 1), member=f"person-{number}")
    with executed() as caught:
        page = browser.get(f"/costs?window={WINDOW}&aggregate={aggregate}")
    assert len(page.context["chart"].steps) > 1
    assert len([sql for sql, _ in caught if "crowding AS" in sql]) == 2  # and the period before
