"""Finds the allocation that a command line means, and completes names in the shell."""

import uuid
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from portal.cli import config
from portal.cli.client import Client, segment
from portal.cli.errors import CommandError

MAX_COMPLETIONS = 200
ALLOCATION = ("allocation", "id")
"""What `-o name` prints of an allocation: its id, since a name may be used again after the end."""
Rows = Callable[[Client], list[tuple[str, str]]]


def find(client: Client, allocation: str) -> str:
    """Return the id of an allocation given by id or by name, also as `-o name` prints it.

    Of several with the name, one of the default project is meant before others, and one that is alive before ended
    ones. Raises CommandError if none or several are left.
    """
    allocation = without_kind(allocation, ALLOCATION[0])
    if is_id(allocation):
        return str(uuid.UUID(allocation))
    rows = client.pages("allocations", MAX_COMPLETIONS, name=allocation)
    rows = [row for row in rows if row["name"] == allocation]  # commas in it would name several
    rows = [row for row in rows if row["project"] == client.config.project] or rows
    rows = [row for row in rows if row["phase"] != "ended"] or rows
    if not rows:
        raise CommandError(
            f"There is no allocation {allocation}, or you cannot see it.",
            reason="not_found",
            hint="`gpu-portal list` lists them.",
        )
    if len({row["project"] for row in rows}) > 1:
        where = ", ".join(f"{row['id']} in {row['project']}" for row in rows)
        raise CommandError(f"Several are named {allocation}: {where}.", reason="ambiguous", hint="Give the id.")
    return str(rows[0]["id"])


def is_id(allocation: str) -> bool:
    """Return whether an allocation is given by its id, also as `-o name` prints it."""
    try:
        uuid.UUID(without_kind(allocation, ALLOCATION[0]))
    except ValueError:
        return False
    return True


def projects_exist(client: Client, slugs: str | None) -> None:
    """Raise ProblemError if there is no project with one of these slugs, which have commas between them, or the person
    cannot see it.
    """
    for slug in filter(None, (slugs or "").split(",")):
        client.get(f"projects/{segment(slug)}")


def without_kind(reference: str, kind: str) -> str:
    """Return a reference as `-o name` prints it without its kind."""
    return reference.removeprefix(f"{kind}/")


def completes(rows: Rows) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a completion of (name, help) pairs. Without a configured portal that answers, it completes nothing."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            found = rows(Client(config.load()).quick())
        except click.ClickException:
            return []
        return [CompletionItem(name, help=words) for name, words in found if name.startswith(incomplete)]

    return complete


def _allocations(client: Client) -> list[tuple[str, str]]:
    rows = client.get("allocations", limit=MAX_COMPLETIONS)["results"]
    return list({row["name"]: f"{row['phase']} in {row['project']}" for row in reversed(rows)}.items())


def _projects(client: Client) -> list[tuple[str, str]]:
    return [(row["slug"], f"team {row['team']}") for row in client.get("me")["projects"]]


def _teams(client: Client) -> list[tuple[str, str]]:
    return [(row["slug"], row["role"]) for row in client.get("me")["teams"]]


def _offerings(client: Client) -> list[tuple[str, str]]:
    return [(row["id"], _free(row)) for row in client.pages("offerings", MAX_COMPLETIONS)]


def _free(row: dict[str, Any]) -> str:
    return f"{row['capacity']['free']} of {row['capacity']['total']} free"


def _jobs(client: Client) -> list[tuple[str, str]]:
    return [(row["name"], f"{row['state']} in {row['project']}") for row in client.pages("jobs", MAX_COMPLETIONS)]


def _tokens(client: Client) -> list[tuple[str, str]]:
    return [(str(row["id"]), row["name"]) for row in client.pages("tokens", MAX_COMPLETIONS)]


complete_allocation, complete_project, complete_team = completes(_allocations), completes(_projects), completes(_teams)
complete_offering, complete_job, complete_token = completes(_offerings), completes(_jobs), completes(_tokens)

allocation_argument = click.argument("allocation", shell_complete=complete_allocation)
