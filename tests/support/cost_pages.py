"""The addresses of all pages of costs, and a month of the demo that fills them."""

from datetime import datetime, timedelta
from urllib.parse import quote

from allocations.models import Allocation
from demo.simulated_history import writer
from portal.core import clock
from portal.tenants.models import Project, User
from quotas.costs import bills
from quotas.costs.calendar import months_later
from quotas.metering.hours import hour_of
from tests.support import demo_fleet, kept_rows
from tests.support.browser import with_password
from tests.support.clusters import LOCAL
from tests.support.pages import held, requested

FOR_ALL = (
    "/costs",
    "/costs?window=30d&aggregate=project",
    "/costs?window=30d&aggregate=team,flavor&filter=" + quote('kind:"whole"'),
    "/costs?window=2020-01-01,2020-02-01",
    "/costs?window=never",
    "/costs/mine",
    "/costs/savings?window=30d",
    "/teams/vision/costs",
    "/projects/vision-train/costs",
    "/prices",
    "/prices/public",
)
FOR_STAFF = (
    "/costs?window=30d&aggregate=team&idle=separate",
    "/costs/assets?window=7d",
    "/costs/assets?window=30d&sort=idle",
    "/costs/assets/local/h100-0?window=30d",
    "/costs/fleet",
    "/costs/proof",
    "/costs/proof?failing=1",
    "/prices?all=1",
    "/prices/set",
    "/prices/node-costs/set",
    "/prices/node-terms/set",
    "/prices/import",
    "/bills",
    "/bills/enter",
    "/bills/fixed-costs/set",
)


def month() -> None:
    """Write the demo's fleet, and thirty days of its past; the last hours are recorded."""
    past(30)
    operator, today = User.objects.get(username="operator"), clock.now().date().replace(day=1)
    bills.enter_bill(operator, LOCAL, months_later(today, -1), "31000", "EUR", "invoice 2026-1187")


def past(days: int) -> None:
    """Write the demo's fleet and this many days of its past; the last hour is recorded, and its processes report."""
    began = hour_of(clock.now()) - timedelta(minutes=30)
    kept_rows.once(("past", days, began), lambda: _write_past(days, began))
    demo_fleet.report()


def _write_past(days: int, began: datetime) -> None:
    demo_fleet.record(began)
    writer.write(LOCAL, days)
    writer.complete(LOCAL)


def person(username: str) -> User:
    """Return a person of the demo who can sign in."""
    return with_password(User.objects.get(username=username))


def running() -> Allocation:
    """Return an allocation of vision-member that has been held for some minutes."""
    user, project = User.objects.get(username="vision-member"), Project.objects.get(slug="vision-train")
    return held(requested(user, project, name="fine-tune-of-a-long-name"), hours=0.4)


def of_allocation(row: Allocation) -> tuple[str, ...]:
    return f"/costs/allocations/{row.pk}", f"/allocations/{row.pk}/costs"
