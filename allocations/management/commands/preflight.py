import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import yaml
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from allocations.cluster.client import connect
from allocations.cluster.preflight import checks, collect
from allocations.cluster.preflight.findings import table
from allocations.domain.objects import ObservedObject
from allocations.reconcile.inventory import node_fact, slice_fact
from portal.clusters import registry
from portal.core import clock
from quotas.catalog.discovery import discover

POLICIES = settings.BASE_DIR / "deploy" / "cluster" / "policies"


class Command(BaseCommand):
    help = "Check whether the cluster of KUBECONFIG is ready for the portal. Exits 1 if a requirement is missing."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--output", choices=["table", "json"], default="table")
        parser.add_argument(
            "--kueue-config", type=Path, metavar="FILE", help="Kueue's configuration, where the portal may not read it"
        )

    def handle(self, *args: object, **options: object) -> None:
        requirements = collect.requirements(
            POLICIES, settings.START_DEADLINE_S, settings.ETCD_QUOTA_BYTES, settings.PROJECT_STORE_MIB
        )
        try:
            client = connect(registry.own())
        except (OSError, ValueError, LookupError) as error:
            raise CommandError(f"KUBECONFIG: {error}") from error
        rights = (*requirements.required_rights, *requirements.excessive_rights)
        facts = collect.read_facts(client, rights, catalogue, clock.now())
        if file := options["kueue_config"]:
            facts = replace(facts, kueue=yaml.safe_load(Path(str(file)).read_text(encoding="utf-8")))
        findings = checks.run_checks(facts, requirements)
        if options["output"] == "json":
            document = {"ready": checks.is_ready(findings), "checks": [asdict(f) for f in findings]}
            self.stdout.write(json.dumps(document, indent=2))
        else:
            self.stdout.write(table(findings))
        if not checks.is_ready(findings):
            sys.exit(1)


def catalogue(
    nodes: Iterable[ObservedObject], slices: Iterable[ObservedObject]
) -> tuple[Mapping[str, str], Iterable[str]]:
    """Return the problem of each node by name, and the names of the flavors that the portal would discover."""
    found = discover(map(node_fact, nodes), map(slice_fact, slices))
    return {node.name: node.problem for node in found.nodes}, [flavor.name for flavor in found.flavors]
