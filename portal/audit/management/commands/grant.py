from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.audit import grants


class Command(BaseCommand):
    help = "As the owner of the tables, give the application's database role its rights. Run after each migrate."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", help="one that exists, owns nothing, and is the user of the portal's DATABASE_URL")

    def handle(self, *args: object, role: str, **options: Any) -> None:
        grants.grant(role)
        self.stdout.write(f"{role} may use all tables, and only add to {', '.join(grants.append_only())}.")
