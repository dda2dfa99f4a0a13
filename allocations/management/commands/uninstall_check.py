from django.core.management.base import BaseCommand, CommandError

from allocations.models import Allocation
from quotas.metering.models import UsageInterval

SHOWN = 20


class Command(BaseCommand):
    help = "Exit 1, with a list, while allocations are live or queued Jobs hold GPUs: nothing would end or bill them."

    def handle(self, *args: object, **options: object) -> None:
        live = Allocation.objects.filter(ended_at=None).order_by("project__slug", "name")
        lines = [f"allocation {slug}/{name}" for slug, name in live.values_list("project__slug", "name")]
        of_jobs = UsageInterval.objects.filter(end=None, member="").order_by("namespace", "holder_id")
        jobs = of_jobs.values_list("namespace", "holder_id").distinct()
        lines += [f"Job with uid {uid} in namespace {namespace}" for namespace, uid in jobs]
        if lines:
            more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
            raise CommandError(
                "\n".join(["Still held or waiting:", *lines[:SHOWN], *more])
                + "\nRelease the allocations (page Allocations, or gpu-portal release), delete the Jobs, and try again."
            )
        self.stdout.write("Nothing is held and nothing waits.")
