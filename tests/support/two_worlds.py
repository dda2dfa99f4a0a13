"""Two worlds that differ only in what another team uses: weeks of two teams on shared GPUs, a bill, and fixed costs."""

from datetime import date
from typing import Any
from uuid import UUID

from portal.core import clock
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team, User
from quotas.catalog.models import Pool
from quotas.costs import bills, rollups, saved_views
from quotas.limits import services as limits
from quotas.metering.hours import DAY
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.people import person
from tests.support.quotas import T0, hour, used
from tests.support.sizes import size

NOW = T0 + 3 * DAY + DAY / 4
OWN, OTHERS = UUID(int=1), UUID(int=2)
WINDOW = "window=2026-10-30,2026-11-06"
FILTERS = (
    'team:"language"',
    'team!:"vision"',
    'member~:"l"|label[app]:"secret"',
    'flavor:"l40s"',
    "colour:x",
    'team:"',
)
COSTS = [
    *(f"aggregate={keys}" for keys in ("all", "team", "department,flavor", "cluster,node", "allocation", "label:app")),
    *("aggregate=team&accumulate=day", "aggregate=namespace,kind&compare=previous", "cost=monthly&aggregate=offering"),
    *(f"aggregate=team&idle={mode}" for mode in ("hide", "owner", "separate", "share")),
    *(f"aggregate=project,member&filter={text}" for text in FILTERS),
]
"""Questions, as the query of an address has them."""
ROLES = ("viewer", "lead")
SECRETS = ("language", "secret")
"""What only the other team has in its names."""


def asked_by(role: str) -> list[str]:
    """Return the questions that a role asks; by default each is asked by one of the two."""
    return COSTS[ROLES.index(role) * size(1, 0) :: size(2, 1)]


def one_world(team: Team, other_team: Team) -> None:
    """Record 8 l40s since September, of which each team has 4, and use of ``team``."""
    fleet(team, other_team)
    record(RESOURCES, -40 * 24)
    operator = person(platform_role="operator")
    with clock.frozen(hour(-40 * 24)):
        for holder in (team, other_team):
            limits.set_limit(SYSTEM, holder, Pool.objects.get(key="l40s/gpu"), 4, borrowing=4)
    _use("vision", OWN)
    with clock.frozen(NOW):
        bills.enter_bill(operator, LOCAL, date(2026, 10, 1), "9000")
        bills.set_shared_cost(operator, "network", date(2026, 10, 1), "100", "weighted")
        bills.set_shared_cost(operator, "support", date(2026, 10, 1), "50", "even")
        rollups.roll_up(LOCAL, hour(-33 * 24), hour(72))


def another_world(other_team: Team, stranger: User) -> None:
    """Let the other team use GPUs, save a view, and run a hold."""
    _use("language", OTHERS)
    saved_views.save(stranger, "secret", "aggregate=member", other_team)
    rollups.roll_up(LOCAL, hour(-33 * 24), hour(72))


def _use(team: str, holder: UUID) -> None:
    """Use l40s of a team for weeks, with a hold that runs."""
    more: dict[str, Any] = {"team": team, "project": f"{team}-train", "namespace": f"{team}-train", "member": team[:2]}
    for day in range(-20, 3):
        used(hour(24 * day), hour(24 * day + 9), 2, labels={"app": "secret" if team == "language" else "train"}, **more)
    used(hour(70), None, 1, holder, **more)
