"""The hourly proof: which hours it checks and when, what it stores, and where that is shown."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.test import Client

from allocations import tasks
from allocations.cluster.kinds import KINDS
from allocations.models import WatchState
from allocations.reconcile.metering import balance_proof
from allocations.reconcile.mirror_writer import record_sync
from portal.core import clock
from portal.tenants.models import User
from quotas.metering import proofs
from quotas.metering.models import BalanceProof, UsageInterval
from tests.support.capacity import GPUS, RESOURCES, hold_gpu, record
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.quotas import T0, hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs/proof"
WINDOW = "2026-11-02T00:00:00Z,2026-11-03T00:00:00Z"


@pytest.fixture(autouse=True)
def catalog(db: None) -> Iterator[None]:
    fleet()
    with clock.frozen(hour(5.1)):
        yield


def watched(until: float, *kinds: str) -> None:
    """Record that the watcher has passed this time, with all kinds or those named."""
    record_sync(LOCAL, *((KINDS[kind], 1, hour(until)) for kind in kinds or KINDS))


def checked() -> list[int]:
    """Return the hours that were checked, counted from the test's first one."""
    return [(row.hour - T0) // timedelta(hours=1) for row in BalanceProof.objects.order_by("hour")]


@pytest.fixture
def ledger() -> None:
    """Record capacity from the first hour on, of which some was held until the fourth."""
    record(RESOURCES, 0)
    used(hour(0.5), hour(3.5), 2)


@pytest.fixture
def damaged(ledger: None) -> None:
    """Record a GPU that was charged 1 1/2 times in the second hour."""
    record(GPUS, 0)
    hold_gpu("gpu-0", 1, 2)
    UsageInterval.objects.filter(node="h100-0").update(gpu_share_numerator=3, gpu_share_denominator=2)


def repair() -> None:
    UsageInterval.objects.filter(node="h100-0").update(gpu_share_numerator=1, gpu_share_denominator=1)


@pytest.mark.usefixtures("ledger")
def test_hours_are_checked_once_they_have_ended_and_every_kind_has_passed_them() -> None:
    watched(9)
    watched(3.9, "Pod")
    assert balance_proof.prove_due() == 3
    assert checked() == [0, 1, 2]
    assert set(BalanceProof.objects.values_list("balanced", flat=True)) == {True}


@pytest.mark.usefixtures("ledger")
def test_an_hour_that_has_not_ended_is_not_checked_whatever_the_watchers_clock_says() -> None:
    watched(9)
    tasks.prove_balance()
    assert checked() == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("ledger")
def test_nothing_is_checked_before_every_kind_was_listed() -> None:
    watched(9)
    WatchState.objects.filter(kind="DeviceClass").delete()
    assert (balance_proof.prove_due(), checked()) == (0, [])


def test_a_cluster_without_a_ledger_has_no_hours() -> None:
    watched(9)
    assert (balance_proof.prove_due(), checked()) == (0, [])


@pytest.mark.usefixtures("ledger")
def test_a_run_that_is_repeated_changes_nothing() -> None:
    watched(9)
    balance_proof.prove_due()
    before = list(BalanceProof.objects.values())
    with clock.frozen(hour(5.2)):
        assert balance_proof.prove_due() == 0
    assert list(BalanceProof.objects.values()) == before


@pytest.mark.usefixtures("ledger")
def test_runs_catch_up_with_what_was_missed_the_newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance_proof, "MAX_HOURS", 2)
    watched(9)
    assert (balance_proof.prove_due(), checked()) == (2, [3, 4])
    with clock.frozen(hour(6.1)):
        assert (balance_proof.prove_due(), checked()) == (2, [2, 3, 4, 5])
        assert (balance_proof.prove_due(), checked()) == (2, [0, 1, 2, 3, 4, 5])
        assert balance_proof.prove_due() == 0


@pytest.mark.usefixtures("damaged")
def test_an_hour_that_was_not_balanced_is_checked_again_until_it_is() -> None:
    watched(9)
    assert (balance_proof.prove_due(), balance_proof.prove_due()) == (5, 1)
    assert [row.hour for row in BalanceProof.objects.filter(balanced=False)] == [hour(1)]
    repair()
    assert balance_proof.prove_due() == 1
    assert not BalanceProof.objects.filter(balanced=False).exists()


@pytest.mark.usefixtures("ledger")
def test_the_newest_hour_alone_is_compared_with_the_mirror() -> None:
    """Nothing in the mirror shows what this interval has held since the first hour."""
    used(hour(0), None)
    watched(9)
    balance_proof.prove_due()
    [row] = BalanceProof.objects.filter(balanced=False)
    assert (row.hour, row.failures[0]["check"]) == (hour(4), "held_as_observed")


@pytest.mark.usefixtures("ledger")
def test_each_cluster_has_hours_of_its_own() -> None:
    far = make_cluster().slug
    used(hour(2), hour(3), cluster=far)
    watched(9)
    record_sync(far, *((kind, 1, hour(3.5)) for kind in KINDS.values()))
    balance_proof.prove_due()
    assert [row.hour for row in BalanceProof.objects.filter(cluster=far)] == [hour(2)]


def run(*options: str) -> str:
    out = StringIO()
    call_command("prove_balance", *options, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("ledger")
def test_the_command_checks_the_whole_past_and_again() -> None:
    watched(9)
    assert run() == "5 hours checked, all balanced.\n"
    assert run() == "5 hours checked, all balanced.\n"


@pytest.mark.usefixtures("damaged")
def test_the_command_prints_what_fails_and_exits_1() -> None:
    watched(9)
    out = StringIO()
    with pytest.raises(SystemExit) as exit_:
        call_command("prove_balance", stdout=out)
    assert exit_.value.code == 1
    assert out.getvalue() == (
        "local 2026-11-02 01:00 UTC uses_fit_gpu: Uses of gpu-0 on node h100-0 add up to 3/2 GPUs "
        "at 2026-11-02 01:00:00 UTC; it is one GPU.\n"
        "NOT BALANCED: 1 of 5 hours.\n"
    )


@pytest.mark.usefixtures("damaged")
def test_the_command_checks_the_hours_that_it_is_given() -> None:
    watched(9)
    assert run("--from", "2026-11-02T02:00:00Z", "--to", "2026-11-02T05:00:00+01:00") == (
        "2 hours checked, all balanced.\n"
    )
    assert run("--from", "2026-11-03") == "0 hours checked, all balanced.\n"
    with pytest.raises(CommandError, match="soon is not a valid time"):
        run("--from", "soon")


@pytest.fixture
def proved(damaged: None) -> None:
    watched(9)
    balance_proof.prove_due()


@pytest.fixture
def auditor() -> User:
    return person(platform_role="auditor")


@pytest.mark.usefixtures("proved")
def test_platform_staff_list_the_hours_newest_first(auditor: User) -> None:
    rows = client(auditor).get(f"{URL}?window={WINDOW}").json()["results"]
    assert [row["window"]["start"] for row in rows] == [f"2026-11-02T0{n}:00:00Z" for n in (4, 3, 2, 1, 0)]
    assert rows[1] == {
        "window": {"start": "2026-11-02T03:00:00Z", "end": "2026-11-02T04:00:00Z"},
        "cluster": LOCAL,
        "checked_at": "2026-11-02T05:06:00Z",
        "balanced": True,
        "accounts": 3,
        "capacity_recorded_since": "2026-11-02T00:00:00Z",
        "capacity_gpu_hours": "10.000000",
        "held": "1.000000",
        "unmanaged": "0.000000",
        "unavailable": "0.000000",
        "stranded": "0.000000",
        "idle": "9.000000",
        "variance": "0.000000",
        "failures": [],
        "failure_count": 0,
    }
    assert (rows[3]["balanced"], rows[3]["failure_count"]) == (False, 1)
    assert rows[3]["failures"] == [
        {
            "check": "uses_fit_gpu",
            "cluster": LOCAL,
            "flavor": "h100",
            "node": "h100-0",
            "name": "gpu-0",
            "expected": "at most 1",
            "found": "3/2",
            "message": "Uses of gpu-0 on node h100-0 add up to 3/2 GPUs at 2026-11-02 01:00:00 UTC; it is one GPU.",
        }
    ]


@pytest.mark.usefixtures("proved")
def test_the_list_has_pages(auditor: User) -> None:
    api = client(auditor)
    first = api.get(f"{URL}?window={WINDOW}&limit=3").json()
    second = api.get(first["next"]).json()
    assert [len(first["results"]), len(second["results"]), second["next"]] == [3, 2, None]
    assert second["results"][0]["window"]["start"] == "2026-11-02T01:00:00Z"
    assert [row["window"]["start"] for row in api.get(second["previous"]).json()["results"]] == [
        row["window"]["start"] for row in first["results"]
    ]


@pytest.mark.parametrize(
    ("window", "count"),
    [
        ("2026-11-02T01:30:00Z,2026-11-02T03:00:00Z", 2),
        ("2026-11-02T03:00:00Z,2026-11-02T03:00:01Z", 1),
        ("0001-01-01,0001-01-02", 0),
        ("today", 5),
    ],
)
@pytest.mark.usefixtures("proved")
def test_a_window_has_the_hours_that_it_touches(auditor: User, window: str, count: int) -> None:
    assert len(client(auditor).get(f"{URL}?window={window}").json()["results"]) == count


@pytest.mark.parametrize("query", ["window=soon", "window=%00", "cursor=x", "limit=0", "cluster=local"])
def test_what_cannot_be_read_is_400(auditor: User, query: str) -> None:
    answer = client(auditor).get(f"{URL}?{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [query.partition("=")[0]])


@pytest.mark.usefixtures("proved")
def test_others_list_nothing(member: User) -> None:
    assert client(member).get(URL).status_code == 403


@pytest.mark.usefixtures("proved")
def test_the_page_names_the_rows_that_fail(auditor: User) -> None:
    page = text(browser_of(auditor).get("/costs/proof"))
    assert "Reconciliation" in page
    assert "1 hour is not balanced." in page
    assert "Uses of gpu-0 on node h100-0 add up to 3/2 GPUs" in page


@pytest.mark.usefixtures("proved")
def test_the_page_says_since_when_all_is_balanced(auditor: User) -> None:
    summary = browser_of(auditor).get("/costs/proof").context["balance"].summaries[0]
    assert (summary.since, summary.until, summary.missing, summary.is_balanced) == (hour(2), hour(5), 0, True)
    repair()
    balance_proof.prove_due()
    page = browser_of(auditor).get("/costs/proof")
    assert page.context["balance"].summaries[0].since == hour(0)
    assert "Balanced since" in text(page)
    assert "not balanced" not in text(page)


@pytest.mark.usefixtures("proved")
def test_hours_that_were_not_checked_are_told(auditor: User) -> None:
    BalanceProof.objects.filter(hour=hour(3)).delete()
    assert "1 hour of it is not checked yet." in text(browser_of(auditor).get("/costs/proof"))


@pytest.mark.usefixtures("proved")
def test_a_newest_hour_that_fails_is_told_first(auditor: User) -> None:
    BalanceProof.objects.filter(hour__gt=hour(1)).delete()
    assert "The hour until" in text(browser_of(auditor).get("/costs/proof"))


@pytest.mark.usefixtures("proved")
def test_more_rows_than_a_page_shows_are_counted(auditor: User) -> None:
    BalanceProof.objects.filter(balanced=False).update(failure_count=F("failure_count") + 6)
    assert "6 more in" in text(browser_of(auditor).get("/costs/proof"))


def test_before_the_first_check_the_page_says_so(auditor: User) -> None:
    assert "Not checked yet." in text(browser_of(auditor).get("/costs/proof"))


@pytest.mark.usefixtures("proved")
def test_members_see_nothing_of_it_on_the_page(member: User) -> None:
    assert "balanced" not in text(browser_of(member).get("/costs/proof"))


def metrics(settings: Any) -> dict[str, float]:
    settings.METRICS_TOKEN = "scrape-me"
    answer = text(Client().get("/metrics", headers={"Authorization": "Bearer scrape-me"}))
    found = (line.rpartition(" ") for line in answer.splitlines() if "balance" in line and line[0] != "#")
    return {name: float(value) for name, _, value in found}


AGE = 'gpu_portal_balance_proof_age_seconds{cluster="local"}'
FAILED = 'gpu_portal_unbalanced_hours{cluster="local"}'


@pytest.mark.usefixtures("proved")
def test_metrics_tell_how_many_hours_fail_and_how_old_the_newest_proof_is(settings: Any) -> None:
    assert metrics(settings) == {FAILED: 1, AGE: 360}


@pytest.mark.usefixtures("ledger")
def test_without_a_proof_its_age_is_that_of_the_ledger(settings: Any) -> None:
    assert metrics(settings) == {FAILED: 0, AGE: 5.1 * 3600}


def test_without_a_ledger_a_proof_has_no_age(settings: Any) -> None:
    assert metrics(settings) == {FAILED: 0}


@pytest.mark.usefixtures("ledger")
def test_what_was_proved_is_read_in_the_same_queries_however_many_hours() -> None:
    BalanceProof.objects.bulk_create([_proof(0)])
    more = [_proof(n) for n in range(1, 50)]
    assert_constant(proofs.summaries, lambda: BalanceProof.objects.bulk_create(more), at_most=5)
    [summary] = proofs.summaries()
    assert summary.until == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=50)


def _proof(n: int) -> BalanceProof:
    parts = dict.fromkeys(("capacity_gpu_hours", "held", "unmanaged", "unavailable", "stranded", "idle", "variance"), 0)
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=n)
    return BalanceProof(cluster_id=LOCAL, hour=at, checked_at=at, balanced=True, accounts=0, **parts)
