import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from allocations.cluster.preflight.findings import table
from portal.operations.doctor import collect
from portal.operations.doctor.checks import run_checks, worst


class Command(BaseCommand):
    help = "Check the running portal and name a fix for each problem. Exits 1 if there is advice, 2 if a problem."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--output", choices=["table", "json"], default="table")

    def handle(self, *args: object, output: str, **options: Any) -> None:
        findings = run_checks(collect.with_api_servers(collect.facts()))
        document = {"worst": worst(findings), "checks": [asdict(one) for one in findings]}
        self.stdout.write(json.dumps(document, indent=2) if output == "json" else table(findings))
        sys.exit(worst(findings))
