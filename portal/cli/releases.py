"""The command that releases allocations: one, several, or all of a project."""

import sys
from typing import Any

import click

from portal.cli import times, waiting
from portal.cli.allocations import details
from portal.cli.client import Client
from portal.cli.errors import CommandError
from portal.cli.hints import in_commands
from portal.cli.lookup import (
    ALLOCATION,
    complete_allocation,
    complete_project,
    find,
    is_id,
    projects_exist,
    without_kind,
)
from portal.cli.option_types import TextUpTo
from portal.cli.output import say, with_client


@click.command()
@click.argument("allocations", nargs=-1, metavar="ALLOCATION...", shell_complete=complete_allocation)
@click.option("--all", "is_all", is_flag=True, help="All of --project that you may release.")
@click.option("--project", help="Slug, with --all.", shell_complete=complete_project)
@click.option("--dry-run", is_flag=True, help="Only say what would be released.")
@click.option("--reason", default="", type=TextUpTo(500))
@click.option("--wait", "waits", is_flag=True, help="Of one ALLOCATION: return when nothing of it is left.")
@click.option("--timeout", type=times.TIMEOUT, default=600.0, show_default=True, help="Seconds to wait at most.")
@with_client(ALLOCATION)
def release(
    client: Client,
    allocations: tuple[str, ...],
    *,
    is_all: bool,
    project: str | None,
    dry_run: bool,
    reason: str,
    waits: bool,
    timeout: float,
) -> None:
    """Release each ALLOCATION, or with --all those of a project; exit 1 if one was not released."""
    if is_all == bool(allocations) or is_all != bool(project):
        raise click.UsageError("Name allocations, or give --all with --project.")
    if waits and dry_run:
        raise click.UsageError("Give --wait or --dry-run, not both.")
    if len(allocations) == 1 and not dry_run:
        _release_one(client, allocations[0], reason, waits=waits, timeout=timeout)
    elif waits:
        raise click.UsageError("--wait is for one allocation; `gpu-portal wait NAME --for ended` waits for another.")
    else:
        projects_exist(client, project)
        found, missing = ([], []) if is_all else _found(client, allocations)
        which = {"project": [project]} if is_all else {"ids": found}
        _release_several(client, {**which, "reason": reason, "dry_run": dry_run}, missing)


def _found(client: Client, names: tuple[str, ...]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the ids of the allocations, and for each name that means none or several a row as of a release."""
    ids, missing = [], []
    for name in names:
        try:
            ids.append(find(client, name))
        except CommandError as error:
            if error.problem["reason"] not in ("not_found", "ambiguous"):
                raise
            unknown = dict.fromkeys(("id", "project", "phase", "outcome"))
            missing.append({**unknown, "name": name, "released": False, "problem": error.problem})
    return ids, missing


def _release_several(client: Client, body: dict[str, Any], missing: list[dict[str, Any]]) -> None:
    """Release what is there; what is not keeps no other from being released."""
    answer: dict[str, Any] = {"results": [], "more": False, "dry_run": body["dry_run"]}
    if body.get("ids") != []:
        answer = client.post("allocations/release", body)
    while answer["more"] and not body["dry_run"] and not _problems(answer):
        following = client.post("allocations/release", body)
        answer = {**following, "results": [*answer["results"], *following["results"]]}
    answer = {**answer, "results": [*answer["results"], *missing]}
    say(client, answer, lambda: _releases(answer))
    sys.exit(1 if _problems(answer) else 0)


def _problems(answer: dict[str, Any]) -> bool:
    return any(row["problem"] for row in answer["results"])


def _releases(answer: dict[str, Any]) -> str:
    lines = []
    for row in answer["results"]:
        if row["problem"]:
            words = in_commands(f"{row['problem']['detail']} {row['problem']['hint']}")
            lines.append(f"{row['name'] or row['id']} is not released: {words}")
        elif answer["dry_run"] and row["released"]:
            lines.append(f"{row['name']} would be released; it is {row['phase']}")
        else:
            lines.append(_released(row))
    if answer["more"]:
        lines.append("And more.")
    return "\n".join(lines) or "No allocations."


def _release_one(client: Client, allocation: str, reason: str, *, waits: bool, timeout: float) -> None:
    row = _released_by_name(client, allocation, reason) or client.post(
        f"allocations/{find(client, allocation)}/release", {"reason": reason}
    )
    if waits:
        awaited = waiting.Awaited(find=lambda _: row, unseen="", releases=True, row=row)
        with waiting.interruptible(client, awaited):
            waiting.finish(client, awaited, "ended", timeout, details)
    else:
        say(client, row, lambda: _released(row))


def _released_by_name(client: Client, name: str, reason: str) -> dict[str, Any] | None:
    """Release the live allocation with the name in the default project, and return it as REST shows it; None if there
    is none. Nothing is asked before, since only releases have a limit of requests of their own.
    """
    if is_id(name) or not client.config.project:
        return None
    which = {"project": [client.config.project], "name": [without_kind(name, ALLOCATION[0])]}
    for row in client.post("allocations/release", {**which, "reason": reason})["results"]:
        return client.get(f"allocations/{row['id']}") if row["problem"] is None else None
    return None


def _released(row: dict[str, Any]) -> str:
    """Return what became of a release: what has not ended yet is releasing."""
    if row["phase"] == "releasing":
        return f"{row['name']} is releasing: charged until its slices are free"
    if row["phase"] == "ended":
        return f"{row['name']} has ended ({row['outcome']})"
    return f"{row['name']} is {row['phase']}, and ends without having started"
