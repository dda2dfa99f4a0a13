"""The commands offerings and queue."""

from operator import itemgetter
from typing import Any

import click

from portal.cli import amounts
from portal.cli.client import Client, segment
from portal.cli.errors import CommandError
from portal.cli.hints import in_commands
from portal.cli.lookup import complete_project, complete_team
from portal.cli.output import Columns, say, say_rows, table, with_client

COLUMNS: Columns = {
    "OFFERING": itemgetter("id"),
    "FREE": lambda row: row["capacity"]["free"],
    "TOTAL": lambda row: row["capacity"]["total"],
    "TEAM": lambda row: f"{row['mine']['used']} of {row['mine']['limit']}",
    "AVAILABLE NOW": lambda row: row["mine"]["can_get_now"],
    "AN HOUR": lambda row: amounts.money(row["price_per_hour"], row["currency"]),
    "CPU": lambda row: _node_share(row)["cpu"],
    "MEMORY": lambda row: _node_share(row)["memory"],
    "ISOLATION": lambda row: "shared, not isolated" if row["isolation"] == "none" else row["isolation"],
}
WIDE: Columns = {
    "KIND": itemgetter("kind"),
    "PRODUCT": lambda row: row["flavor"]["product"],
    "GPU MEMORY": lambda row: f"{row['flavor']['memory_mib'] or '-'} MiB",
    "BACKEND": lambda row: row["flavor"]["path"],
    "CAN BORROW": lambda row: row["mine"]["can_borrow"],
    "CLUSTER": itemgetter("cluster"),
}


@click.command()
@click.option("--project", help="Count for its team; else the default project's.", shell_complete=complete_project)
@click.option("--kind", type=click.Choice(["whole", "mig", "shared", "claim"]))
@click.option("--free", is_flag=True, help="Only what is available now.")
@with_client(("offering", "id"))
def offerings(client: Client, *, project: str | None, kind: str | None, free: bool) -> None:
    """List what can be requested, in slices."""
    slug = project or client.config.project
    rows = client.pages("offerings", 1000, project=slug, kind=kind, free="true" if free else None)
    say_rows(client, rows, COLUMNS, wide=WIDE, empty="Nothing is offered.")


@click.command()
@click.argument("team", required=False, shell_complete=complete_team)
@with_client()
def queue(client: Client, team: str | None) -> None:
    """Show who waits in the queue of TEAM (default: yours): allocations, and Jobs submitted with kubectl."""
    found = client.get(f"queues/{segment(team or _own_team(client))}")
    rows = [
        (
            row["position"],
            row["kind"],
            row["name"],
            row["project"],
            _requests(row["requests"]),
            in_commands(f"{row['message']} {row['hint']}"),
        )
        for row in found["pending"]
    ]
    order = "" if found["ordered_by"] == "kueue" else "Kueue does not answer; the order is the portal's own.\n"
    say(
        client,
        found,
        lambda: (
            f"{found['team']}: {found['admitted']} admitted, {found['reserving']} with quota reserved\n{order}"
            + table(("PLACE", "KIND", "NAME", "PROJECT", "REQUESTS", "WHY"), rows, "The queue is empty.")
        ),
    )


def _node_share(row: dict[str, Any]) -> dict[str, Any]:
    """Return CPU and memory of the node that come with one slice."""
    return row["node_share"] or {"cpu": "-", "memory": "-"}


def _requests(requests: dict[str, int]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in requests.items())


def _own_team(client: Client) -> str:
    """Return the team of the default project, or the caller's only one."""
    me = client.get("me")
    by_project = {project["slug"]: project["team"] for project in me["projects"]}
    if client.config.project in by_project:
        return str(by_project[client.config.project])
    teams = [team["slug"] for team in me["teams"]]
    if len(teams) != 1:
        raise CommandError(
            f"You are in {'several teams' if teams else 'no team'}.",
            reason="team_missing",
            hint=f"Name one: {', '.join(teams)}." if teams else "Ask a lead to invite you.",
        )
    return str(teams[0])
