import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.audit import chain, heads
from portal.audit.verify import verify


class Command(BaseCommand):
    help = "verify: exits 1 and names the first row of the audit log that is not what was written. heads: exports them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["verify", "heads"])
        parser.add_argument(
            "--file", type=Path, default=settings.AUDIT_HEADS_FILE, help="of exported heads; default: AUDIT_HEADS_FILE"
        )

    def handle(self, *args: object, what: str, file: Path | None, **options: Any) -> None:
        chain.seal()
        try:
            if what == "heads":
                for head in heads.export(file):
                    self.stdout.write(head.line())
                return
            exported = heads.read(file) if file else []
        except (OSError, ValueError) as error:
            raise CommandError(str(error)) from error
        verdict = verify(exported)
        if verdict.broken:
            self.stdout.write(f"BROKEN at {verdict.broken} {verdict.count} entries before it hold.")
            sys.exit(1)
        self.stdout.write(f"{verdict.count} entries hold, {len(exported)} exported heads too. Head: {verdict.digest}")
