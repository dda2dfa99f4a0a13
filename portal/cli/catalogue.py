"""The commands offerings, queue and costs."""

from decimal import Decimal
from operator import itemgetter
from typing import Any

import click

from portal.cli import amounts
from portal.cli.client import Client
from portal.cli.errors import CommandError
from portal.cli.hints import in_commands
from portal.cli.lookup import complete_project, complete_team
from portal.cli.output import Columns, moment, say, say_rows, table, with_client

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
@with_client
def offerings(client: Client, *, project: str | None, kind: str | None, free: bool) -> None:
    """List what can be requested, in slices."""
    slug = project or client.config.project
    rows = client.pages("offerings", 1000, project=slug, kind=kind, free="true" if free else None)
    say_rows(client, rows, COLUMNS, wide=WIDE, named=("offering", "id"), empty="Nothing is offered.")


@click.command()
@click.argument("team", required=False, shell_complete=complete_team)
@with_client
def queue(client: Client, team: str | None) -> None:
    """Show who waits in the queue of TEAM (default: yours): allocations, and Jobs submitted with kubectl."""
    found = client.get(f"queues/{team or _own_team(client)}")
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


@click.command()
@click.option(
    "--window", default="7d", show_default=True, help="today, yesterday, 7d, lastweek, month, lastmonth, t0,t1"
)
@click.option("--aggregate", default="project", show_default=True, help="Keys, with commas.")
@click.option("--filter", "only", help='As OpenCost: team:"vision"+kind:"whole".')
@click.option("--daily", is_flag=True, help="A row per day.")
@with_client
def costs(client: Client, *, window: str, aggregate: str, only: str | None, daily: bool) -> None:
    """Show what was used and what it cost."""
    found = client.get("costs", window=window, aggregate=aggregate, filter=only, accumulate="false" if daily else None)
    rows = [
        (
            moment(row["window"]["start"]),
            row["name"],
            row["gpu_hours"],
            amounts.cost(row["total"], row["currency"], row["unpriced_gpu_hours"]),
        )
        for row in found["results"]
    ]
    head = ("FROM", aggregate.upper(), "GPU-HOURS", "COST")
    unpriced = found["unpriced_gpu_hours"]
    incomplete = f"\nCosts are {amounts.left_out(unpriced)}." if Decimal(unpriced) else ""
    say(client, found, lambda: table(head, rows, "Nothing was used.") + incomplete)


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
