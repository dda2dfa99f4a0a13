import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from demo import people
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets


class Command(BaseCommand):
    help = "Create the demo's people and projects, and write the credentials to HOME/demo.json."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--home", type=Path, required=True, help="state folder of the local cluster")

    def handle(self, *args: object, home: Path, **options: Any) -> None:
        file = home / "demo.json"
        previous = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        seeded = people.seed(people.Seeds(passwords=previous.get("passwords", {}), tokens=previous.get("tokens", {})))
        content = {
            "url": settings.PORTAL_URL,
            "kubeconfig": str(home / "kubeconfig"),
            "tokens": seeded.tokens,
            "passwords": seeded.passwords,
            "namespaces": seeded.namespaces,
        }
        file.touch(mode=0o600)
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        rows = Project.objects.filter(slug__in=seeded.namespaces).values_list("cluster", "slug")
        workqueue.enqueue(*targets.platforms(), *(targets.project(*one) for one in rows))
