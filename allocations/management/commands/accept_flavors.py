from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from portal.core.errors import Invalid
from portal.tenants.actors import SYSTEM
from quotas.catalog import quantities, services
from quotas.catalog.models import Flavor
from quotas.limits import seeds


class Command(BaseCommand):
    help = "Offer flavors that discovery proposed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="FLAVOR", help="flavors to accept; none: list the proposed")
        parser.add_argument("--all", action="store_true", help="accept all proposed flavors")
        parser.add_argument(
            "--gpu-memory", metavar="AMOUNT", help="memory of a whole GPU of the named flavors, as nvidia-smi prints it"
        )
        parser.add_argument("--share", action="store_true", help="give each team half of the pools without a limit")

    def handle(self, *args: object, names: list[str], share: bool, **options: Any) -> None:
        proposed = {flavor.name: flavor for flavor in Flavor.objects.filter(accepted=False)}
        if unknown := sorted(set(names) - set(Flavor.objects.values_list("name", flat=True))):
            raise CommandError(f"no flavor {', '.join(unknown)}; proposed are {', '.join(sorted(proposed)) or 'none'}")
        if amount := options["gpu_memory"]:
            _set_gpu_memory(names, amount)
        chosen = [f for name, f in sorted(proposed.items()) if options["all"] or name in names]
        for flavor in chosen:
            services.accept_flavor(SYSTEM, flavor)
            self.stdout.write(f"{flavor.name} is offered now")
        if share:
            self.stdout.write(f"{seeds.seed_half_quotas()} limits set")
        if not (names or options["all"]):
            for name, flavor in sorted(proposed.items()):
                self.stdout.write(f"{name}: {flavor.product} by {flavor.path}, {flavor.strategy}")


def _set_gpu_memory(names: list[str], amount: str) -> None:
    if not names:
        raise CommandError("--gpu-memory needs the flavors that it is of")
    try:
        memory = quantities.mib(amount)
        with transaction.atomic():
            for flavor in Flavor.objects.filter(name__in=names):
                services.configure_flavor(SYSTEM, flavor, {"gpu_memory_mib": memory})
    except ValueError as error:
        raise CommandError(f"--gpu-memory: {error}") from error
    except Invalid as error:
        raise CommandError(f"--gpu-memory: {error.errors['gpu_memory_mib'][0]}") from error
