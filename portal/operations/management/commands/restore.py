from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.operations.backup import BackupError, restore


class Command(BaseCommand):
    help = "Restore a backup of this release into an empty database. Run it as the role that is to own the tables."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--programs", type=Path, metavar="FOLDER", help="of pg_dump and pg_restore; default: PATH")

    def handle(self, *args: object, folder: Path, programs: Path | None, **options: Any) -> None:
        try:
            manifest = restore(folder, programs)
        except BackupError as error:
            raise CommandError(str(error)) from error
        rows = sum(manifest["rows"].values())
        self.stdout.write(f"{rows} rows of {manifest['taken_at']} restored, and the ledger's sums are equal.")
        self.stdout.write("Next: python manage.py grant ROLE, then start the portal's processes.")
