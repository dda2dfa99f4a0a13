"""Runs a role of the portal: `python -m portal.server ROLE [OPTION ...]`, the entry point of the image.

`web`, `worker`, `beat` and `watch` run until they are stopped; options are passed on. `migrate` prepares the database
as its owner (`DATABASE_OWNER_URL`), `wait` returns once that is done, and `alive` exits 0 while the role of this
container works.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

PLANNER = "-c join_collapse_limit=3 -c plan_cache_mode=force_generic_plan"
"""The queries of worker and watcher begin with the table that is filtered and go on along foreign keys. That order is
good as it is written, and planning one with nine tables takes longer than running it. A plan that is kept serves for
all values: they are keys.
"""
CELERY = ("celery", "--app=portal")
PROCESSES = {
    "web": ("gunicorn.app.wsgiapp", "portal.wsgi", "--config=python:portal.server.config"),
    "worker": (*CELERY, "worker", "--loglevel=INFO"),
    "beat": (*CELERY, "beat", "--loglevel=INFO"),
    "watch": ("manage", "watch"),
}
SILENT_S = 60.0
"""A process that has not touched its file for so long is taken for dead; the longest pause between two is 10 s."""
WAIT_S = 600.0


def run(role: str, options: list[str]) -> None:
    """Replace this process by that of ``role``, which PostgreSQL's log and statistics name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    os.environ.setdefault("PGAPPNAME", f"gpu-portal-{role}")
    if role in ("worker", "watch"):
        os.environ.setdefault("PGOPTIONS", PLANNER)
    os.execv(sys.executable, [sys.executable, "-m", *PROCESSES[role], *options])  # noqa: S606


def migrate() -> int:
    """Apply migrations as the owner of the tables, and give the role of ``DATABASE_URL`` its rights."""
    from portal import env

    application = env.required("DATABASE_URL")
    owner = env.text("DATABASE_OWNER_URL", application)
    os.environ |= {"DATABASE_URL": owner, "PGAPPNAME": "gpu-portal-migrate"}
    _django()
    from django.core.management import call_command

    from portal.audit import context

    with context.channel("command", command="migrate"):
        call_command("migrate", interactive=False)
        if owner != application:
            call_command("grant", unquote(urlsplit(application).username or ""))
    return 0


def wait() -> int:
    """Return 0 once every migration of this release is applied, or 1 if some are not after ``WAIT_S``."""
    _django()
    from django.db import connection

    from portal.health import OK, database_checks

    deadline = time.monotonic() + WAIT_S
    while missing := {name: value for name, value in database_checks().items() if value != OK}:
        words = ", ".join(f"{name}: {value}" for name, value in missing.items())
        sys.stderr.write(f"waiting for the database: {words}\n")
        if time.monotonic() > deadline:
            return 1
        connection.close()
        time.sleep(2)
    return 0


def alive() -> int:
    """Return 0 if the file named by ``ALIVE_FILE`` was touched within ``SILENT_S``, else 1."""
    file = Path(os.environ["ALIVE_FILE"])
    age_s = time.time() - file.stat().st_mtime if file.exists() else None
    if age_s is not None and age_s <= SILENT_S:
        return 0
    sys.stderr.write("has not worked yet\n" if age_s is None else f"silent for {age_s:.0f} s\n")
    return 1


def _django() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()


STEPS: dict[str, Callable[[], int]] = {"migrate": migrate, "wait": wait, "alive": alive}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portal.server")
    parser.add_argument("role", choices=[*PROCESSES, *STEPS])
    arguments, options = parser.parse_known_args()
    if step := STEPS.get(arguments.role):
        return step()
    run(arguments.role, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
