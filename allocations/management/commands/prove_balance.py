import sys
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime, time
from typing import Any

from django.core.management.base import BaseCommand

from allocations.reconcile.metering import balance_proof
from portal.clusters import registry
from portal.core import rfc3339


class Command(BaseCommand):
    help = "Check that the ledger adds up in every hour. Prints what fails, and exits 1 then."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--from", dest="start", type=moment, metavar="TIME", help="default: the ledger's beginning")
        parser.add_argument("--to", dest="end", type=moment, metavar="TIME", help="default: the last hour that ended")

    def handle(self, *args: object, start: datetime | None, end: datetime | None, **options: Any) -> None:
        checked = failed = 0
        for cluster in registry.slugs():
            for row in balance_proof.prove_between(cluster, start, end):
                checked += 1
                failed += not row.balanced
                for failure in row.failures:
                    self.stdout.write(f"{cluster} {row.hour:%F %H:%M} UTC {failure['check']}: {failure['message']}")
                if left := row.failure_count - len(row.failures):
                    self.stdout.write(f"{cluster} {row.hour:%F %H:%M} UTC: {left} more rows")
        if failed:
            self.stdout.write(f"NOT BALANCED: {failed} of {checked} hours.")
            sys.exit(1)
        self.stdout.write(f"{checked} hours checked, all balanced.")


def moment(text: str) -> datetime:
    """Return an RFC 3339 time, or the midnight in UTC of a date."""
    try:
        return datetime.combine(rfc3339.day(text), time(), UTC) if "T" not in text else rfc3339.time(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text} is not a valid time; use 2026-11-01 or 2026-11-01T08:00:00Z") from error
