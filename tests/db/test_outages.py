"""Outages of the recorder, and what was charged for them."""

from datetime import datetime
from fractions import Fraction
from typing import Any

import pytest
from django.test import Client

from allocations.cluster.kinds import KINDS
from allocations.reconcile.mirror_writer import record_list, record_sync
from portal.core import clock
from portal.tenants.models import Team, User
from quotas.costs.filters import EVERYTHING, Filter, as_filter
from quotas.costs.outages import OutageShare
from quotas.costs.outages import share as share_of
from quotas.costs.questions import Question, asked_by
from quotas.costs.rating import Window
from quotas.metering import outages
from quotas.metering.models import RecorderOutage
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
DAY = Window(hour(0), hour(24))
WINDOW = "2026-11-02T00:00:00Z,2026-11-03T00:00:00Z"


@pytest.fixture(autouse=True)
def catalog(team: Team) -> Any:
    fleet(team)
    with clock.frozen(hour(30)):
        yield


def listed(kind: str, last_seen: datetime, at: datetime) -> None:
    """List a kind, of which nothing exists, after it was complete until ``last_seen``."""
    record_sync(LOCAL, (KINDS[kind], 1, last_seen))
    record_list(LOCAL, KINDS[kind], [], 2, at)


def rows() -> list[tuple[str, datetime, datetime]]:
    return list(RecorderOutage.objects.order_by("start", "kind").values_list("kind", "start", "end"))


def share(user: User, window: Window, where: Filter = EVERYTHING) -> OutageShare:
    return share_of(asked_by(user, Question(window, clock.now(), where=where)))


def test_a_kind_that_nobody_watched_was_in_an_outage_until_it_is_listed() -> None:
    listed("Pod", hour(1), hour(1.5))
    assert rows() == [("Pod", hour(1), hour(1.5))]


def test_a_list_while_a_kind_is_watched_is_no_outage() -> None:
    listed("Pod", hour(1), hour(1 + 19 / 3600))
    record_list(LOCAL, KINDS["ResourceClaim"], [], 2, hour(3))
    assert rows() == []


def test_a_kind_that_does_not_show_the_ledger_has_no_outages() -> None:
    listed("RoleBinding", hour(1), hour(2))
    assert rows() == []


def test_outages_of_several_kinds_are_one_time() -> None:
    for kind, start, end in (("Pod", 1, 2), ("Node", 1.5, 3), ("Workload", 5, 6)):
        outages.record(LOCAL, kind, hour(start), hour(end))
    assert outages.spans(hour(0), hour(5.5)) == {LOCAL: [(hour(1), hour(3)), (hour(5), hour(5.5))]}


def test_what_is_charged_for_outages_is_their_share_of_the_bill(member: User) -> None:
    used(hour(0), hour(4), 2)
    used(hour(1.5), None, gpu_share=Fraction(1, 4))
    outages.record(LOCAL, "Pod", hour(1), hour(2))
    outages.record(LOCAL, "Pod", hour(20), hour(21))
    found = share(member, DAY)
    assert [one.window for one in found.outages] == [Window(hour(1), hour(2)), Window(hour(20), hour(21))]
    assert found.charged.gpu_hours == 2 + Fraction(1, 8) + Fraction(1, 4)
    assert found.charged.cost == found.charged.gpu_hours * Fraction(11, 10)


def test_windows_that_adjoin_have_the_share_of_their_sum(member: User) -> None:
    used(hour(0), None, 3)
    outages.record(LOCAL, "Pod", hour(1), hour(9))
    parts = [share(member, Window(hour(a), hour(b))) for a, b in ((0, 2), (2, 7.25), (7.25, 24))]
    assert sum(one.charged.gpu_hours for one in parts) == share(member, DAY).charged.gpu_hours == 24


def test_another_clusters_outage_and_another_teams_bill_do_not_count(member: User, other_team: Team) -> None:
    far = make_cluster().slug
    used(hour(0), hour(4), 2)
    used(hour(0), hour(4), 5, cluster=far)
    outages.record(far, "Pod", hour(1), hour(2))
    assert share(member, DAY).charged.gpu_hours == 5
    assert share(person(other_team), DAY).charged.gpu_hours == 0
    assert share(member, DAY, as_filter({"cluster": {LOCAL}})).charged.gpu_hours == 0


def test_rest_and_page_say_what_is_charged_for_outages(member: User) -> None:
    used(hour(0), hour(4), 2)
    outages.record(LOCAL, "Pod", hour(1), hour(1.5))
    found = client(member).get("/api/v1/costs", {"window": WINDOW}).json()["outages"]
    assert found == {
        "results": [{"cluster": LOCAL, "window": {"start": "2026-11-02T01:00:00Z", "end": "2026-11-02T01:30:00Z"}}],
        "gpu_hours": "1.000000",
        "cost": "1.1000",
    }
    words = "Cluster local: 1 metering gap, 30 min. 1.00 GPU-hours, 1.10 EUR, are charged for it."
    assert words in page(browser_of(member))


def test_the_page_says_for_how_long_any_of_several_clusters_was_not_recorded(member: User) -> None:
    make_cluster("far")
    for cluster, start, end in ((LOCAL, 1, 3), ("far", 2, 4), ("far", 10, 11)):
        outages.record(cluster, "Pod", hour(start), hour(end))
    words = "At least one of the clusters far, local: 3 metering gaps, 4 h."
    assert words in page(browser_of(member))


def test_the_page_says_nothing_without_an_outage(member: User) -> None:
    used(hour(0), hour(4), 2)
    assert "not recorded for" not in page(browser_of(member))


def page(browser: Client) -> str:
    return text(browser.get("/costs", {"window": WINDOW}))
