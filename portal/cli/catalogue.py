"""The commands offerings, queue and costs."""

from typing import Any

import click

from portal.cli.client import Client
from portal.cli.output import moment, say, table, with_client


@click.command()
@click.option("--project", help="Count for the team of this project.")
@click.option("--kind", type=click.Choice(["whole", "mig", "shared", "claim"]))
@click.option("--free", is_flag=True, help="Only what can be had at once.")
@with_client
def offerings(client: Client, *, project: str | None, kind: str | None, free: bool) -> None:
    """List what can be asked for, in slices."""
    rows = client.pages("offerings", 1000, project=project, kind=kind, free="true" if free else None)
    head = ("OFFERING", "FREE", "TOTAL", "TEAM", "CAN GET NOW", "AN HOUR", "CPU", "MEMORY", "ISOLATION")
    say(
        client,
        {"results": rows},
        lambda: table(
            head,
            [
                (
                    row["id"],
                    row["capacity"]["free"],
                    row["capacity"]["total"],
                    f"{row['mine']['used']} of {row['mine']['limit']}",
                    row["mine"]["can_get_now"],
                    f"{row['price_per_hour'] or '-'} {row['currency']}",
                    *_node_share(row["node_share"]),
                    "shared, not isolated" if row["isolation"] == "none" else row["isolation"],
                )
                for row in rows
            ],
            "Nothing is offered.",
        ),
    )


@click.command()
@click.argument("team", required=False)
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
            f"{row['message']} {row['hint']}",
        )
        for row in found["pending"]
    ]
    order = "" if found["ordered_by"] == "kueue" else "Kueue does not answer; the order is the portal's own.\n"
    say(
        client,
        found,
        lambda: (
            f"{found['team']}: {found['admitted']} admitted, {found['reserving']} with quota reserved\n{order}"
            + table(("PLACE", "KIND", "NAME", "PROJECT", "ASKS", "WHY"), rows, "Nobody waits.")
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
        (moment(row["window"]["start"]), row["name"], row["gpu_hours"], f"{row['total']} {row['currency']}")
        for row in found["results"]
    ]
    say(client, found, lambda: table(("FROM", aggregate.upper(), "GPU-HOURS", "COST"), rows, "Nothing was used."))


def _node_share(share: dict[str, Any] | None) -> tuple[str, str]:
    """Return CPU and memory of the node that come with one slice."""
    return (share["cpu"], share["memory"]) if share else ("-", "-")


def _requests(requests: dict[str, int]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in requests.items())


def _own_team(client: Client) -> str:
    teams = [team["slug"] for team in client.get("me")["teams"]]
    if len(teams) != 1:
        raise click.ClickException(f"Name a team: {', '.join(teams) or 'you are in none'}.")
    return str(teams[0])
