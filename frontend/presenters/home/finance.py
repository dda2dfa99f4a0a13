"""What an auditor sees first of the money: the month so far, and what is missing in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from django.urls import reverse
from django.utils.formats import date_format

from frontend.presenters import amounts, prices
from frontend.presenters.audit import AuditLine
from frontend.presenters.home.counters import Counter, first_of
from portal.core import clock
from portal.tenants.models import User
from quotas.costs import windows
from quotas.costs.answers import answer
from quotas.costs.calendar import Calendar, months_later
from quotas.costs.columns import ALL
from quotas.costs.models import Bill
from quotas.costs.previews import BILLED_MONTHS
from quotas.costs.questions import Question, asked_by
from quotas.metering import ledger_starts, outages


@dataclass(frozen=True)
class Finance:
    """``without_bill`` are (cluster, month) that have ended; ``gaps`` how often a cluster was not watched this month;
    ``not_priced`` the offerings without a price by flavor, ``log`` the latest entries of the audit log.
    """

    month: str
    total: str | None
    currency: str
    unpriced: Fraction
    without_bill: Sequence[tuple[str, str]]
    gaps: Mapping[str, int]
    not_priced: Mapping[str, Sequence[str]]
    log: Sequence[AuditLine]


def of_month(user: User, calendar: Calendar, log: Sequence[AuditLine]) -> Finance:
    """Return the month until now; a fixed number of queries."""
    now = clock.now()
    window = windows.parse("month", now, calendar)
    costs = answer(asked_by(user, Question(window, now, keys=(ALL,), calendar=calendar)))
    return Finance(
        month=date_format(calendar.day_of(now), "F Y"),
        total=costs.total,
        currency=costs.currency,
        unpriced=sum((Fraction(row.unpriced_gpu_hours) for row in costs.rows), Fraction(0)),
        without_bill=_without_bill(now),
        gaps={cluster: len(spans) for cluster, spans in outages.spans(window.start, now).items()},
        not_priced=prices.not_priced(now),
        log=log,
    )


def _without_bill(now: datetime) -> list[tuple[str, str]]:
    """Return the last months that have ended, since a cluster's ledger begins, for which it has no bill; newest
    first.
    """
    this = now.date().replace(day=1)
    ended = [months_later(this, -number) for number in range(1, BILLED_MONTHS + 1)]
    billed = set(Bill.objects.filter(month__gte=ended[-1]).values_list("cluster_id", "month"))
    first: dict[str, date] = {cluster: at.date().replace(day=1) for cluster, at in ledger_starts.first_hours().items()}
    return [
        (cluster, f"{month:%Y-%m}")
        for month in ended
        for cluster, began in sorted(first.items())
        if began <= month and (cluster, month) not in billed
    ]


def _total(found: Finance) -> tuple[str, str]:
    if found.total is None:
        return amounts.NOT_PRICED, found.month
    return amounts.money(Fraction(found.total), found.currency), found.month


def _bills(found: Finance) -> tuple[int, str]:
    return len(found.without_bill), first_of([f"{month} of {cluster}" for cluster, month in found.without_bill])


def _gaps(found: Finance) -> tuple[int, str]:
    return sum(found.gaps.values()), first_of(sorted(found.gaps))


def _unpriced(found: Finance) -> tuple[int | str, str]:
    count = sum(map(len, found.not_priced.values()))
    words = f"{count} offering{'' if count == 1 else 's'} without a price" if count else ""
    return amounts.number(found.unpriced) if found.unpriced else 0, words


COUNTERS = (
    Counter("Months without a bill", "warn", _bills, lambda _: reverse("bills")),
    Counter("Metering gaps this month", "warn", _gaps, lambda _: f"{reverse('costs')}?window=month"),
    Counter("Unpriced GPU-hours this month", "warn", _unpriced, lambda _: reverse("prices")),
    Counter("Cost this month", "quiet", _total, lambda _: f"{reverse('costs')}?window=month"),
)
