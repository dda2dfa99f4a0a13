from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from allocations.management.commands.prove_balance import moment
from allocations.reconcile.metering import ledger_rollups
from portal.clusters import registry


class Command(BaseCommand):
    help = "Roll up the ledger of every hour that has ended once more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--from", dest="start", type=moment, metavar="TIME", help="default: the ledger's beginning")
        parser.add_argument("--to", dest="end", type=moment, metavar="TIME", help="default: the last hour that ended")

    def handle(self, *args: object, start: datetime | None, end: datetime | None, **options: Any) -> None:
        for cluster in registry.slugs():
            count = ledger_rollups.rebuild(cluster, start, end)
            self.stdout.write(f"{cluster}: {count} hours rolled up.")
