"""The command jobs: Jobs that were submitted to a queue with kubectl."""

import uuid
from operator import itemgetter
from typing import Any

import click

from allocations.domain.allocation_spec import Labels
from portal.cli import amounts
from portal.cli.client import Client
from portal.cli.errors import CommandError
from portal.cli.hints import in_commands
from portal.cli.lookup import complete_job, complete_project, complete_team, projects_exist, without_kind
from portal.cli.output import Columns, say, say_rows, with_client
from portal.cli.times import moment

JOB = ("job", "uid")
COLUMNS: Columns = {
    "NAME": itemgetter("name"),
    "PROJECT": itemgetter("project"),
    "STATE": itemgetter("state"),
    "PLACE": lambda row: f"{row['queue']['position']} of {row['queue']['of']}" if row["queue"] else "-",
    "GPUS": itemgetter("gpus"),
    "GPU-HOURS": lambda row: row["gpu_hours"]["reserved"],
    "COST": amounts.cost_to_date,
    "WHY": lambda row: in_commands(f"{row['message']} {row['hint']}".strip()) or "-",
}
WIDE: Columns = {
    "TEAM": itemgetter("team"),
    "NAMESPACE": itemgetter("namespace"),
    "OFFERING": lambda row: row["offering"] or "-",
    "PRIORITY": itemgetter("priority"),
    "LABELS": lambda row: str(Labels.from_json(row["labels"])) or "-",
    "SUBMITTED": lambda row: moment(row["created_at"]),
    "USED": lambda row: row["gpu_hours"]["used"],
    "UID": itemgetter("uid"),
}


@click.command()
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--project", help="Slugs, with commas.", shell_complete=complete_project)
@click.option("--team", help="Slugs, with commas.", shell_complete=complete_team)
@click.option("--label", help="KEY=VALUE, with commas: those whose pods have all of them.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@with_client(JOB)
def jobs(client: Client, job: str | None, *, limit: int, **filters: str | None) -> None:
    """List queued Jobs, newest first; or show JOB (uid or name) and why its pods were refused."""
    if job is None:
        projects_exist(client, filters["project"])
        rows = client.pages("jobs", limit, **filters)
        say_rows(client, rows, COLUMNS, wide=WIDE, empty="No Jobs.")
        return
    row = client.get(f"jobs/{_find(client, without_kind(job, JOB[0]), **filters)}")
    say(client, row, lambda: _text(row))


def _find(client: Client, job: str, **filters: str | None) -> str:
    try:
        return str(uuid.UUID(job))
    except ValueError:
        pass
    rows = [row for row in client.pages("jobs", 1000, **filters) if row["name"] == job]
    rows = [row for row in rows if row["project"] == client.config.project] or rows
    if not rows:
        raise CommandError(
            f"There is no Job {job} with a queue, or you cannot see it.",
            reason="not_found",
            hint="`gpu-portal jobs` lists them.",
        )
    if len(rows) > 1:
        where = ", ".join(f"{row['uid']} in {row['project']}" for row in rows)
        raise CommandError(f"Several are named {job}: {where}.", reason="ambiguous", hint="Give the uid.")
    return str(rows[0]["uid"])


def _text(row: dict[str, Any]) -> str:
    lines = [(head.lower(), cell(row)) for head, cell in {**COLUMNS, **WIDE}.items()]
    lines += [("refused", refusal) for refusal in row["refusals"] or ()]
    return "\n".join(f"{name:<11}{value}" for name, value in lines)
