"""Web processes of this release and of the next one, whose migration is applied, serve one database at once."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests
from django.conf import settings
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from allocations.models import Allocation
from tests.support import upgrade
from tests.support.web_process import web_process

PACKAGES = ("portal", "quotas", "allocations", "frontend", "demo", "deploy")
BEFORE = "    labels = models.JSONField("
COLUMN = '    cost_center = models.CharField(max_length=40, blank=True, default="", db_default="")\n'
ROUNDS = 5


@pytest.fixture
def next_release(tmp_path: Path) -> Path:
    """Return a copy of this release in which allocations have one more column, with its migration."""
    for package in PACKAGES:
        shutil.copytree(settings.BASE_DIR / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(settings.BASE_DIR / "manage.py", tmp_path)
    models = tmp_path / "allocations" / "models.py"
    text = models.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    models.write_text(text.replace(BEFORE, COLUMN + BEFORE), encoding="utf-8")
    manage(tmp_path, "makemigrations", "allocations", "--name=cost_center")
    return tmp_path


@pytest.fixture
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Let Django use the database of the last release, migrated to this one; return a person's token."""
    with django_db_blocker.unblock(), upgrade.upgraded(upgrade.RELEASE):
        yield upgrade.token()


def manage(folder: Path, *arguments: str) -> None:
    address = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}")
    env = {**os.environ, "DATABASE_URL": urlunsplit(address)}
    subprocess.run([sys.executable, "-m", "manage", *arguments], cwd=folder, env=env, check=True, capture_output=True)


def test_both_releases_accept_show_and_end_what_the_other_one_has_written(database: str, next_release: Path) -> None:
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {database}"
    with web_process() as old:
        manage(next_release, "migrate")
        with web_process(folder=next_release) as new:
            for number in range(ROUNDS):
                for writes, reads in ((old, new), (new, old)):
                    url = f"http://127.0.0.1:{writes}/api/v1/allocations"
                    body = {"project": "vision-train", "offering": "l40s/whole", "name": f"by-{writes}-{number}"}
                    made = session.post(url, json=body, timeout=30)
                    assert made.status_code == 201, made.text
                    other = f"http://127.0.0.1:{reads}/api/v1/allocations/{made.json()['id']}"
                    assert session.get(other, timeout=30).json()["name"] == body["name"]
                    assert session.post(f"{other}/release", json={}, timeout=30).status_code == 200
    assert Allocation.objects.filter(name__startswith="by-", desired="released").count() == 2 * ROUNDS
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM allocations_allocation WHERE cost_center = ''")
        assert cursor.fetchone() == (Allocation.objects.count(),)
