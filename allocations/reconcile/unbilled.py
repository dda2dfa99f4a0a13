"""What is held or reserved and has no open interval in the ledger: nothing, while one transaction writes both."""

from uuid import UUID

from allocations.models import Allocation
from allocations.reconcile import job_reservations
from allocations.states import Phase
from portal.core import due
from quotas.metering.models import UsageInterval

HELD = (Phase.ACTIVE, Phase.LEAVING)


def allocations() -> set[UUID]:
    """Allocations that are held and not charged; one query."""
    charged = UsageInterval.objects.filter(end=None).values("allocation")
    return set(Allocation.objects.filter(phase__in=HELD).exclude(pk__in=charged).values_list("pk", flat=True))


def jobs() -> set[tuple[str, str]]:
    """Namespace and uid of queued Jobs that are not charged for what they have reserved; three queries."""
    return job_reservations.differing()


def mark() -> None:
    """Have those looked at who enter what is missing."""
    targets = [f"allocation:{pk}" for pk in allocations()]
    due.mark(*targets, *(["inventory"] if jobs() else []))
