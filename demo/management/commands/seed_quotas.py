import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from demo import presets, prices
from portal.tenants.actors import SYSTEM
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Node, PoolUse
from quotas.limits import seeds as limits


class Command(BaseCommand):
    help = (
        "Wait for the catalogue, accept its flavors, set the demo's prices and presets, and give each team half of "
        "the pools."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--wait", type=float, default=60.0, help="seconds to wait for the catalogue")

    def handle(self, *args: object, wait: float, **options: Any) -> None:
        deadline = time.monotonic() + wait
        while not is_found():
            if time.monotonic() > deadline:
                raise CommandError(f"no pool was found within {wait:g} s; do watcher and worker run, are nodes ready?")
            time.sleep(0.2)
        for flavor in Flavor.objects.filter(accepted=False):
            catalog.accept_flavor(SYSTEM, flavor)
        limits_, prices_ = limits.seed_half_quotas(), prices.price()
        self.stdout.write(f"{limits_} limits, {prices_} prices and {presets.seed_presets()} presets set")


def is_found() -> bool:
    """Return whether all nodes are ready and a pool has units."""
    return PoolUse.objects.filter(total__gt=0).exists() and not Node.objects.filter(present=True, ready=False).exists()
