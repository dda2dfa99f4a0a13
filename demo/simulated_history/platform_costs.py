"""What the platform of a demo paid: a node cost, a fixed cost, and the bills of months that have ended.

An operator of the demo states them as a person would. A history in which no month begins has none of them.
"""

from datetime import date
from decimal import Decimal
from functools import partial

from demo.simulated_history.model import History
from portal.core import clock
from portal.tenants.models import PlatformRole, User
from quotas.costs import bills, capacity_services, currencies, previews
from quotas.costs.calendar import months_later
from quotas.costs.models import NodeCost, SharedCost
from quotas.costs.node_terms import Term
from quotas.metering.hours import DAY

SOURCE = "simulated"
NODE_SHARE = Decimal("0.85")
"""What a GPU of the most expensive flavor costs, of its price."""
NETWORK = ("network", Decimal(900))
BILLED_SHARE = Decimal("1.04")
"""What a bill is of the cost of capacity in its month."""
CENT = Decimal("0.01")


def set_costs(drawn: History) -> None:
    """Set a node cost from the start of the history on, and a fixed cost from its first whole month on. Before the
    hours are rolled up, since a node cost changes them.
    """
    months, user = _months(drawn), _operator()
    if not (months and drawn.prices and user):
        return
    currency, first = currencies.of_portal() or "", drawn.prices[0]
    with clock.frozen(drawn.start):
        subject = capacity_services.subject_named(user, first.flavor, Term.ON_DEMAND)
        amount = max(one.price.per_gpu_hour for one in drawn.prices) * NODE_SHARE
        per = NodeCost.Per.GPU
        capacity_services.set_node_cost(user, subject, amount.quantize(CENT), per, "", currency, drawn.start, SOURCE)
        name, fixed = NETWORK
        split = SharedCost.Split.WEIGHTED
        bills.set_shared_cost(user, name, months[0], fixed, split, currency=currency, source=SOURCE)


def enter_bills(cluster: str, drawn: History) -> None:
    """Enter a bill of each whole month of the history that has ended, once its hours are rolled up."""
    user = _operator()
    for month in _months(drawn):
        at = previews.month_window(month).end + 2 * DAY
        if user is None or at > drawn.until:
            continue
        enter = partial(bills.enter_bill, user, cluster, month, source=SOURCE)
        if cost := previews.bill_effect(user, partial(enter, Decimal(1))).capacity_cost:
            with clock.frozen(at):
                enter((cost * BILLED_SHARE).quantize(CENT))


def _months(drawn: History) -> list[date]:
    """Return the months, UTC, that begin in the history."""
    months = [drawn.start.date().replace(day=1)]
    while previews.month_window(months_later(months[-1], 1)).start <= drawn.until:
        months.append(months_later(months[-1], 1))
    return [month for month in months if drawn.start <= previews.month_window(month).start]


def _operator() -> User | None:
    return User.objects.filter(platform_role=PlatformRole.OPERATOR, is_active=True).order_by("pk").first()
