"""Exports and imports prices, costs and terms of nodes as CSV, and prints public list prices."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core.errors import Problem
from portal.tenants.models import User
from quotas.costs import price_tables, public_prices


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        export = commands.add_parser("export", help="print all prices, costs and terms as CSV")
        import_ = commands.add_parser("import", help="set what a CSV file says, all rows or none")
        import_.add_argument("file", help="- reads standard input")
        import_.add_argument("--dry-run", action="store_true", help="say what would be set, and set nothing")
        for each in (export, import_):
            each.add_argument("--as", dest="username", required=True, help="the operator who does it")
        public = commands.add_parser("public", help="print public list prices; with --flavor, as costs to import")
        public.add_argument("--instance", help="of this instance only, such as p5.48xlarge")
        public.add_argument("--flavor", help="as what the nodes of this flavor cost")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['command']}")(options)
        except Problem as problem:
            raise CommandError(f"{problem.detail} {problem.hint}".strip()) from problem

    def _export(self, options: dict[str, Any]) -> None:
        self.stdout.write(price_tables.export_table(_user(options)), ending="")

    def _import(self, options: dict[str, Any]) -> None:
        file = options["file"]
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        done = price_tables.import_table(_user(options), text, dry_run=options["dry_run"])
        for row in done.rows:
            place = f"line {row.line}, column {row.column}" if row.column else f"line {row.line}"
            self.stdout.write(f"{place}: {row.result}: {row.message}")
        if done.errors:
            raise CommandError(f"{done.errors} rows cannot be imported, so none is.")
        self.stdout.write("Imported." if done.is_applied else "Nothing is imported: this was a dry run.")

    def _public(self, options: dict[str, Any]) -> None:
        prices = [one for one in public_prices.listed() if options["instance"] in (None, one.instance)]
        if options["flavor"]:
            rows = (public_prices.as_cost(one, options["flavor"]) for one in prices)
            self.stdout.write(price_tables.as_csv(rows), ending="")
            return
        for one in prices:
            place = f"{one.provider} {one.instance} {one.region}".rstrip()
            amounts = f"{one.per_node_hour:f} {one.currency}, {one.per_gpu_hour:f} for each of {one.gpus} {one.gpu}"
            self.stdout.write(f"{place} {one.term}: {amounts}; as of {one.as_of}, {one.source}")


def _user(options: dict[str, Any]) -> User:
    user = User.objects.filter(username=options["username"]).first()
    if user is None:
        raise CommandError(f"There is no person {options['username']}.")
    return user
