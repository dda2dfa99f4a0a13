"""Writes the database of this release, with rows that its own services wrote.

    python -m tests.services python -m tests.upgrade

It has an allocation that is held, one that waits, one that has ended, a lease whose row is lost, and a token, whose
text is in the first line. A release writes it once, under its own name.
"""

import os
import subprocess
from datetime import timedelta

import django
from django.core.management import call_command

from deploy.local import stores
from portal.core import clock
from portal.tenants import members
from portal.tenants.actors import SYSTEM
from tests.support.upgrade import NOON, RELEASE

OPTIONS = (
    *("--inserts", "--no-owner", "--no-privileges", "--no-comments"),
    *("--exclude-table-data=auth_permission", "--exclude-table-data=django_content_type"),  # Django makes them again
)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    call_command("migrate", verbosity=0)
    with clock.frozen(NOON):
        token = _rows()
    command = [str(stores.postgres_binaries() / "pg_dump"), *OPTIONS, os.environ["DATABASE_URL"]]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Psql alone knows lines that begin with a backslash.
    lines = (line for line in dump.splitlines() if line and not line.startswith(("--", "\\")))
    RELEASE.write_text("\n".join([f"-- {token}", *lines, ""]), encoding="utf-8")


def _rows() -> str:
    """Write the rows; return the text of the token."""
    from django.contrib.auth.hashers import make_password

    from allocations.lifecycle import spec_of_row
    from portal.tenants import services
    from portal.tenants.models import Scope, User
    from tests.support.fleet import allocate, fleet
    from tests.support.observed import mirror_lease
    from tests.support.pages import ended, held

    team = services.create_team(SYSTEM, services.create_department(SYSTEM, "research", "Research"), "vision", "Vision")
    project = services.create_project(SYSTEM, team, "vision-train", "Vision training")
    fleet(team)
    ada = User.objects.create(username="ada", password=make_password(None))
    members.add(SYSTEM, team, ada.username, "member")
    held(allocate(ada, project, name="held", hours=8), hours=0)
    allocate(ada, project, name="waiting", hours=1.5)
    ended(allocate(ada, project, name="over", hours=8))
    lost = spec_of_row.rows().get(pk=allocate(ada, project, name="lost", hours=8).pk)
    mirror_lease(lost)
    lost.delete()
    return services.issue_token(SYSTEM, ada, "pipeline", Scope.values, timedelta(days=365))[1]


if __name__ == "__main__":
    main()
