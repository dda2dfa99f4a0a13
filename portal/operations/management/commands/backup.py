from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.operations.backup import BackupError, backup


class Command(BaseCommand):
    help = "Write the database and a manifest into a new folder. Run it as the owner of the tables."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--programs", type=Path, metavar="FOLDER", help="of pg_dump and pg_restore; default: PATH")

    def handle(self, *args: object, folder: Path, programs: Path | None, **options: Any) -> None:
        try:
            manifest = backup(folder, programs)
        except BackupError as error:
            raise CommandError(str(error)) from error
        rows, size = sum(manifest["rows"].values()), manifest["dump"]["bytes"]
        self.stdout.write(f"{rows} rows of {len(manifest['rows'])} tables in {folder} ({size} bytes).")
