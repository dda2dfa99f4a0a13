import time
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from demo import people
from demo.simulated_history import length, past_allocations, platform_costs, writer
from demo.simulated_history.model import History
from demo.simulated_history.world import NothingRecorded
from portal.clusters import registry

NO_DEMO = (
    "This is not the demo's database. A history is only simulated where the demo's people were the first ones: "
    "make demo HISTORY=30d."
)


class Command(BaseCommand):
    help = "Write a simulated past of the demo, before what its ledger has recorded. Once; a second time does nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=_days, required=True, metavar="Nd", help=f"1d to {length.MAX_DAYS}d")
        parser.add_argument("--wait", type=float, default=60.0, help="seconds to wait until the fleet is recorded")

    def handle(self, *args: object, days: int, wait: float, **options: Any) -> None:
        if not people.are_the_first():
            raise CommandError(NO_DEMO)
        cluster, began = registry.own(), time.monotonic()
        found = _write(cluster, days, began + wait)
        if found is None:
            self.stdout.write("There is a simulated history already; it stays as it is.")
        else:
            times = f"{found.start:%F %H:%M} to {found.until:%F %H:%M} UTC"
            self.stdout.write(f"{times}: {len(found.holds)} intervals held, {len(found.capacity)} of capacity.")
        proved = writer.complete(cluster)
        if found:
            platform_costs.enter_bills(cluster, found)
        self.stdout.write(f"{proved} hours rolled up and proved, after {time.monotonic() - began:.0f} s.")


def _write(cluster: str, days: int, deadline: float) -> History | None:
    while True:
        try:
            with transaction.atomic():
                found = writer.write(cluster, days)
                if found:
                    past_allocations.add(found.allocations)
                    platform_costs.set_costs(found)
                return found
        except NothingRecorded:
            if time.monotonic() > deadline:
                raise CommandError("Nothing is recorded of the cluster yet. Do watcher and worker run?") from None
            time.sleep(0.5)


def _days(text: str) -> int:
    try:
        return length.days(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
